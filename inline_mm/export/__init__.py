"""ONNX files of models: the code behind tools/export_onnx.py."""

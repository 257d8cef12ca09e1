"""Predictions on images, folders and videos: tools/image_demo.py."""

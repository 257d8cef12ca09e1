"""Parameters and multiply-adds: the code behind tools/get_flops.py."""

"""The version of inline_mm, read by setup.py and by the package."""

__version__ = '0.1.0'

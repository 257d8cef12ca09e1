"""Comparison of tested models: the code behind tools/compare.py.

`rows` (records, read and put together) ← `facts` and `published` (what they
differ in) ← `table` ← `text`, `figures`, `curves`, `page` ← `comparison`.
"""

from .comparison import compare, compare_files, read_record

__all__ = ['compare', 'compare_files', 'read_record']

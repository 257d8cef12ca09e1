"""What attention does on images: the code behind tools/analyze_attention.py.

`features` (queries, keys and values as a backbone makes them) ← `measures`
(functions of one head) ← `blocks` (numbers of a block, averages over images)
← `figures`, `maps` (PNG) ← `run` (from a config to a folder).
"""

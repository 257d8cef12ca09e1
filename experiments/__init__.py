"""Small experiments on drawn shapes: the code behind python -m experiments.

`shapes` (the data), `one_run` (a training and its test, in a process of its
own) ← `runs` (all of an experiment) ← `comparison` and `ablations` (which
runs there are, and the report of their records).
"""

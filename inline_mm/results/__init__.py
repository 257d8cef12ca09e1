"""Records of tests, one JSON file for each: what tools/compare.py reads."""

"""The code behind tools/: nothing here is needed to train or test."""

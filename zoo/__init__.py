"""Meta files of the shipped configs, and the READMEs' tables of models."""

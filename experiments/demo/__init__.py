"""The demonstration: what `make demo` runs."""

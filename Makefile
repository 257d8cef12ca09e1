# `make demo` and `make test` are all one needs; both complete .venv first.
# Needed: Python 3.10 to 3.12, a C++17 compiler and about 9 GB of disk.
#
#   make env PYTHON=python3.12                            another interpreter
#   make env TORCH="torch==2.9.1 torchvision==0.24.1"     another torch
#   make env HOSTS=upstream    the upstream hosts, in .venv-upstream (test too)
#   make test ARGS="-k pvt"                               more for pytest

PYTHON ?= python3
TORCH ?=
HOSTS ?= onedl
ARGS ?=

VENV = $(if $(filter upstream,$(HOSTS)),.venv-upstream,.venv)
PYTEST = OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 2
SOURCES = inline_mm benchmarks experiments zoo configs tools tests setup.py

.PHONY: env demo experiment ablations test test-all test-elsewhere lint

env:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not there:" \
	  "name a Python 3.10 to 3.12, as in 'make env PYTHON=python3.12'" >&2; \
	  exit 1; }
	@$(PYTHON) tools/setup_env.py --hosts '$(HOSTS)' --torch '$(TORCH)'

demo: env
	$(VENV)/bin/python -m experiments.demo

experiment: env
	$(VENV)/bin/python -m experiments comparison

ablations: env
	$(VENV)/bin/python -m experiments ablations

test: env
	$(PYTEST) -m 'not heavy' $(ARGS)

test-all: env
	$(PYTEST) $(ARGS)

# Part of the suite in other circumstances; ends in a table.
test-elsewhere: env
	.venv/bin/python tests/elsewhere.py $(ARGS)

lint: env
	$(VENV)/bin/ruff check $(SOURCES)
	$(VENV)/bin/ruff format --check $(SOURCES)

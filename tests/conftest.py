"""Shared set-up: one thread per worker, so that timings stay comparable."""

import torch

torch.set_num_threads(1)

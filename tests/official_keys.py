"""Key lists of the 15 official state dicts, buffers and heads included."""

import gzip
import json
from pathlib import Path

import torch

PATH = Path(__file__).parent / 'data' / 'official_keys.json.gz'

with gzip.open(PATH, 'rt') as file:
    _KEYS = json.load(file)

# swin_b_384, ...: family, initial of the size, side of the images.
OFFICIAL_MODELS = tuple(_KEYS)


def official_keys(model):
    """[key, shape, dtype] of an official state dict, in its order."""
    return _KEYS[model]


def meta_state_dict(model):
    """An official state dict without memory: tensors on the meta device."""
    return {
        key: torch.empty(shape, dtype=getattr(torch, dtype), device='meta')
        for key, shape, dtype in official_keys(model)
    }

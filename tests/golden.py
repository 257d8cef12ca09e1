"""Golden numbers of the official models: inputs and weights by rule.

`tests/data/goldens` holds a part small enough to be carried (made by
`tests/shrink_goldens.py`); the environment variable INLINE_MM_GOLDENS names a
folder with the full set, which is then used instead. tests/data/README.md
gives the rule and the tolerances.
"""

import json
import math
import os
import zlib
from pathlib import Path

import numpy as np
import torch

BUNDLED = Path(__file__).parent / 'data' / 'goldens'
FOLDER = Path(os.environ.get('INLINE_MM_GOLDENS', BUNDLED))
BUFFERS = ('relative_position_index', 'attn_mask')

OUTPUT_TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
GRADIENT_TOLERANCE = 1e-9


def standard_normal(name, shape):
    """Float64 draw seeded with the CRC-32 of `name`, as float64 array."""
    seed = zlib.crc32(name.encode())
    generator = np.random.Generator(np.random.PCG64(seed))
    return generator.standard_normal(tuple(shape))


def draw(name, shape):
    """An input or a cotangent: float32 values in a float64 tensor."""
    return torch.from_numpy(
        standard_normal(name, shape).astype(np.float32)
    ).double()


def draw_weights(keys, namespace=''):
    """Weights by rule for (key, shape, dtype) entries, without buffers."""
    weights = {}
    for key, shape, _ in keys:
        leaf = key.rsplit('.', 1)[-1]
        if leaf in BUFFERS:
            continue
        offset, scale = 0.0, 0.1
        if leaf == 'weight':
            offset = 1.0 if len(shape) == 1 else 0.0
            if len(shape) > 1:
                scale = 1 / math.sqrt(math.prod(shape[1:]))
        value = offset + scale * standard_normal(namespace + key, shape)
        weights[key] = torch.from_numpy(value.astype(np.float32)).double()
    return weights


def model_cases(*families):
    """Names of the whole-model cases at hand that belong to `families`."""
    names = sorted(path.stem for path in (FOLDER / 'models').glob('*.json'))
    return [name for name in names if name.split('_')[0] in families]


def load_model_case(name):
    """Settings and reference numbers of a whole-model case."""
    folder = FOLDER / 'models'
    settings = json.loads((folder / f'{name}.json').read_text())
    return settings, dict(np.load(folder / f'{name}.npz'))


def module_cases(*families):
    """Settings of the attention and block cases of `families`."""
    cases = json.loads((FOLDER / 'modules' / 'cases.json').read_text())
    return {
        name: case
        for name, case in cases.items()
        if case['family'] in families
    }


def load_module_case(name):
    """Reference numbers of an attention or block case."""
    path = FOLDER / 'modules' / f'{name}.npz'
    return dict(np.load(path))


def assert_close(got, numbers, name, tolerance):
    """Compare a tensor with the reference `name`, whole or sampled.

    The error is relative to the largest magnitude of the whole reference.
    """
    values = torch.from_numpy(np.asarray(numbers[name])).double()
    got = got.detach().double().reshape(-1)
    if f'idx/{name}' in numbers:
        scale = float(numbers[f'absmax/{name}'])
        assert got.numel() == int(numbers[f'numel/{name}']), name
        got = got[torch.from_numpy(numbers[f'idx/{name}']).long()]
    else:
        scale = values.abs().max().item()
    values = values.reshape(-1)
    assert got.shape == values.shape, (name, got.shape, values.shape)
    error = (got - values).abs().max().item() / scale
    assert error <= tolerance, f'{name}: {error:.2e} > {tolerance:.0e}'

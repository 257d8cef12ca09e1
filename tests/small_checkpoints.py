"""Official state dicts made small, and models for them.

An eighth of the channels, and for `tiny` ones at most two blocks per stage;
the keys are the official ones, the weights are drawn by key.
"""

import itertools
import re
import zlib

import numpy as np
import torch
from mmengine.registry import MODELS
from official_keys import official_keys

from inline_mm.models import variants

FACTOR = 8
TINY = {'pvt': 'pvt_t', 'swin': 'swin_t', 'cswin': 'cswin_t', 'deit': 'deit_t'}
FAMILIES = tuple(TINY)
CLASSES = {
    'pvt': 'InLinePVT',
    'swin': 'InLineSwin',
    'cswin': 'InLineCSwin',
    'deit': 'InLineDeiT',
}
BUFFERS = ('relative_position_index', 'attn_mask')


def tiny_arch(family):
    """The arch of `tiny_state_dict`."""
    row = dict(getattr(variants, family.upper())['tiny'])
    dims = row['embed_dims']
    if isinstance(dims, int):
        row['embed_dims'] = dims // FACTOR
    else:
        row['embed_dims'] = tuple(dim // FACTOR for dim in dims)
    for name in ('depths', 'inline_depths'):
        if name in row:
            row[name] = tuple(min(depth, 2) for depth in row[name])
    if 'depth' in row:
        row['depth'] = 2
    return row


def tiny_state_dict(family, head=True):
    """A small official state dict with the first two blocks of each stage."""
    block = re.compile(r'(?:blocks|block\d|stage\d)\.(\d+)\.')
    tensors = small_state_dict(TINY[family], head)
    return {
        key: tensor
        for key, tensor in tensors.items()
        if not (match := block.search(key)) or int(match.group(1)) < 2
    }


def small_state_dict(model, head=True):
    """An official state dict, small, with buffers.

    Args:
        model (str): one of `official_keys.OFFICIAL_MODELS`.
        head (bool): with the classifier.
    """
    tensors = {}
    for key, shape, _ in official_keys(model):
        if key.endswith('relative_position_index'):
            tensors[key] = position_index(int(shape[0] ** 0.5))
        elif key.endswith('attn_mask'):
            tensors[key] = shift_mask(int(shape[1] ** 0.5))
        elif head or not key.startswith('head.'):
            tensors[key] = draw(key, shrink(key, shape))
    return tensors


def shrink(key, shape):
    if key.endswith('relative_position_bias_table'):
        return shape
    if 'pos_embed' in key:
        return [*shape[:2], shape[2] // FACTOR]
    # Channels are shrunk, sides of kernels and classes aren't.
    return [
        size // FACTOR if size >= 24 and size != 1000 else size
        for size in shape
    ]


def draw(key, shape):
    seed = zlib.crc32(key.encode())
    generator = torch.Generator().manual_seed(seed)
    return 0.1 * torch.randn(*shape, generator=generator)


def position_index(window):
    """Bias table row of each pair of tokens, spelled out pair by pair."""
    tokens = list(itertools.product(range(window), repeat=2))
    index = [
        (y - v + window - 1) * (2 * window - 1) + (x - u + window - 1)
        for y, x in tokens
        for v, u in tokens
    ]
    return torch.tensor(index).reshape(len(tokens), len(tokens))


def shift_mask(window):
    """-100 where a shift by half a window joins strangers, on 2x2 windows."""
    side, shift = 2 * window, window // 2
    region = np.zeros((side, side))
    parts = (
        slice(0, -window),
        slice(-window, -shift),
        slice(-shift, None),
    )
    for number, (rows, columns) in enumerate(
        itertools.product(parts, repeat=2)
    ):
        region[rows, columns] = number
    masks = []
    for top, left in itertools.product((0, window), repeat=2):
        cut = region[top : top + window, left : left + window].reshape(-1)
        masks.append(np.where(cut[:, None] != cut[None, :], -100.0, 0.0))
    return torch.tensor(np.stack(masks), dtype=torch.float32)


def build(family, **options):
    """A small backbone, not initialised by `init_cfg` yet."""
    options.setdefault('arch', tiny_arch(family))
    return MODELS.build(dict(type=CLASSES[family], **options))


def load(backbone, path, **options):
    """Initialise as a run does, through init_cfg."""
    backbone.init_cfg = dict(
        type='InLinePretrained', checkpoint=path, **options
    )
    backbone.init_weights()
    return backbone

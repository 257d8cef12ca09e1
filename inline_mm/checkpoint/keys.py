"""Official key names and ours: one ordered table of patterns per family.

The first rule that fits a key is the one that counts. Every rule works in
both directions, so that a trained backbone can be written back.

Source of the official names: state dicts of the published InLine
classification code (arXiv 2412.06590).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .patterns import Pattern

# Where a rule's tensors exist. 'downsample' is every stage but the first;
# 'buffer' and 'head' have no place in a backbone; 'ablation' has no official
# name.
MODEL, STAGE, DOWNSAMPLE = 'model', 'stage', 'downsample'
BLOCK, INLINE, SOFTMAX = 'block', 'inline', 'softmax'
BUFFER, HEAD, ABLATION = 'buffer', 'head', 'ablation'


@dataclass(frozen=True)
class Transform:
    """How tensors change on the way.

    Args:
        forward (Callable): official tensors, one per pattern, to ours.
        inverse (Callable): our tensor to the official ones.
    """

    forward: Callable[..., Tensor]
    inverse: Callable[[Tensor], tuple[Tensor, ...]]


IDENTITY = Transform(lambda tensor: tensor, lambda tensor: (tensor,))


def _split_qkv(qkv: Tensor) -> tuple[Tensor, Tensor]:
    channels = qkv.shape[0] // 3
    return qkv[:channels].clone(), qkv[channels:].clone()


# The official PVT projects queries apart from keys and values.
MERGE_QKV = Transform(lambda q, kv: torch.cat([q, kv]), _split_qkv)


@dataclass(frozen=True)
class Rule:
    """One line of a table.

    Args:
        official (tuple[Pattern]): official keys; several are joined, none
            means that only ours has it.
        ours (Pattern | None): our key; None drops the tensor.
        where (str): which parts of a model have it.
        transform (Transform): change of the tensors.
    """

    official: tuple[Pattern, ...]
    ours: Pattern | None
    where: str
    transform: Transform = IDENTITY


def _rule(
    official: str | tuple[str, ...],
    ours: str | None,
    where: str = MODEL,
    transform: Transform = IDENTITY,
) -> Rule:
    official = (official,) if isinstance(official, str) else official
    return Rule(
        tuple(Pattern(text) for text in official),
        None if ours is None else Pattern(ours),
        where,
        transform,
    )


def _block_rules(
    official: str, ours: str, residual: str = 'attn.residual'
) -> list[Rule]:
    """Rules that the blocks of all families share, under two prefixes."""
    names = {
        'norm1': 'norm1',
        'norm2': 'norm2',
        'mlp.fc1': 'ffn.layers.0.0',
        'mlp.fc2': 'ffn.layers.1',
    }
    rules = [
        _rule(f'{official}.{theirs}.{{p}}', f'{ours}.{mine}.{{p}}', BLOCK)
        for theirs, mine in names.items()
    ]
    rules.append(
        _rule(
            f'{official}.{residual}.{{k}}.{{p}}',
            f'{ours}.attn.kernel_predictor.{{k}}.{{p}}',
            INLINE,
        )
    )
    # The matrix of the kernel relu(A x + b), which the paper only ablates.
    rules.append(_rule((), f'{ours}.attn.kernel.0.{{p}}', ABLATION))
    # What other linear attentions have beside their projections.
    rules.append(_rule((), f'{ours}.attn.depthwise.{{p}}', ABLATION))
    return rules


_HEAD = _rule('head.{p}', 'head.fc.{p}', HEAD)
_OURS = 'stages.{i}.blocks.{j}'

PVT = [
    _rule('patch_embed1.proj.{p}', 'patch_embed.projection.{p}'),
    _rule('patch_embed1.norm.{p}', 'patch_embed.norm.{p}'),
    _rule(
        'patch_embed{i+1}.proj.{p}',
        'stages.{i}.downsample.projection.{p}',
        DOWNSAMPLE,
    ),
    _rule(
        'patch_embed{i+1}.norm.{p}',
        'stages.{i}.downsample.norm.{p}',
        DOWNSAMPLE,
    ),
    _rule('pos_embed{i+1}', 'stages.{i}.pos_embed', STAGE),
    *_block_rules('block{i+1}.{j}', _OURS),
    _rule(
        ('block{i+1}.{j}.attn.q.{p}', 'block{i+1}.{j}.attn.kv.{p}'),
        f'{_OURS}.attn.qkv.{{p}}',
        BLOCK,
        MERGE_QKV,
    ),
    _rule('block{i+1}.{j}.attn.proj.{p}', f'{_OURS}.attn.proj.{{p}}', BLOCK),
    _HEAD,
]

_SWIN_BLOCK = 'layers.{i}.blocks.{j}'
SWIN = [
    _rule('patch_embed.proj.{p}', 'patch_embed.projection.{p}'),
    _rule('patch_embed.norm.{p}', 'patch_embed.norm.{p}'),
    _rule(
        'layers.{i-1}.downsample.norm.{p}',
        'stages.{i}.downsample.norm.{p}',
        DOWNSAMPLE,
    ),
    _rule(
        'layers.{i-1}.downsample.reduction.weight',
        'stages.{i}.downsample.reduction.weight',
        DOWNSAMPLE,
    ),
    *_block_rules(_SWIN_BLOCK, _OURS),
    _rule(f'{_SWIN_BLOCK}.attn.qkv.{{p}}', f'{_OURS}.attn.qkv.{{p}}', BLOCK),
    _rule(f'{_SWIN_BLOCK}.attn.proj.{{p}}', f'{_OURS}.attn.proj.{{p}}', BLOCK),
    _rule(
        f'{_SWIN_BLOCK}.attn.relative_position_bias_table',
        f'{_OURS}.attn.relative_position_bias_table',
        SOFTMAX,
    ),
    _rule(f'{_SWIN_BLOCK}.attn.relative_position_index', None, BUFFER),
    _rule(f'{_SWIN_BLOCK}.attn_mask', None, BUFFER),
    _rule('norm.{p}', 'norm3.{p}'),
    _HEAD,
]

_CSWIN_BLOCK = 'stage{i+1}.{j}'
CSWIN = [
    _rule('stage1_conv_embed.0.{p}', 'patch_embed.projection.{p}'),
    _rule('stage1_conv_embed.2.{p}', 'patch_embed.norm.{p}'),
    _rule(
        'merge{i}.conv.{p}', 'stages.{i}.downsample.projection.{p}', DOWNSAMPLE
    ),
    _rule('merge{i}.norm.{p}', 'stages.{i}.downsample.norm.{p}', DOWNSAMPLE),
    *_block_rules(_CSWIN_BLOCK, _OURS, residual='attns.0.residual'),
    _rule(f'{_CSWIN_BLOCK}.qkv.{{p}}', f'{_OURS}.attn.qkv.{{p}}', BLOCK),
    _rule(f'{_CSWIN_BLOCK}.proj.{{p}}', f'{_OURS}.attn.proj.{{p}}', BLOCK),
    # InLine blocks have one branch, which is no branch in ours.
    _rule(
        f'{_CSWIN_BLOCK}.attns.0.get_v.{{p}}',
        f'{_OURS}.attn.lepe.{{p}}',
        INLINE,
    ),
    _rule(
        f'{_CSWIN_BLOCK}.attns.{{b}}.get_v.{{p}}',
        f'{_OURS}.attn.lepe.{{b}}.{{p}}',
        SOFTMAX,
    ),
    _rule('norm.{p}', 'norm3.{p}'),
    _HEAD,
]

DEIT = [
    _rule('cls_token', 'cls_token'),
    _rule('pos_embed', 'pos_embed'),
    _rule('patch_embed.proj.{p}', 'patch_embed.projection.{p}'),
    *_block_rules('blocks.{j}', 'blocks.{j}'),
    _rule('blocks.{j}.attn.qkv.{p}', 'blocks.{j}.attn.qkv.{p}', BLOCK),
    _rule('blocks.{j}.attn.proj.{p}', 'blocks.{j}.attn.proj.{p}', BLOCK),
    _rule('norm.{p}', 'norm.{p}'),
    _HEAD,
]

TABLES = {'pvt': PVT, 'swin': SWIN, 'cswin': CSWIN, 'deit': DEIT}

# Norms of the outputs that dense tasks take; the official classifiers have
# none but the last, `norm3`.
OUTPUT_NORM = Pattern('norm{i}.{p}')
OUTPUT_NORMS = ('swin', 'cswin')

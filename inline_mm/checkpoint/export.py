"""Our state dicts back to official names."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ..layers import WindowAttention
from ..layers.windows import WindowLayout
from .convert import OFFICIAL, Translation, describe_misfit, translate
from .errors import CheckpointError
from .keys import OUTPUT_NORM, OUTPUT_NORMS
from .layout import NUM_STAGES, find_rule

STRIDES = (4, 8, 16, 32)


def to_official(
    state_dict: Mapping[str, Tensor], keep_head: bool = False
) -> dict[str, Tensor]:
    """The inverse of `convert_official`, bit by bit.

    The buffers that official Swin models keep in their state dicts are made
    anew. Output norms other than the last have no official place and are left
    out.

    Args:
        state_dict (Mapping[str, Tensor]): a whole backbone in our names,
            without prefixes, trained by whatever task.
        keep_head (bool): keep a classifier's `head.fc` as `head`. Defaults
            to False.

    Returns:
        dict[str, Tensor]: tensors by official names.

    Raises:
        CheckpointError: if the official model has other tensors.
    """
    result = translate(state_dict)
    _check_exportable(result)
    tensors = {**result.tensors, **(result.head if keep_head else {})}
    official = {}
    for key, tensor in tensors.items():
        official.update(_official_tensors(key, tensor, result.family))
    if result.family == 'swin':
        official.update(_swin_buffers(result))
    return official


def _check_exportable(result: Translation) -> None:
    """Refuse what the official code has no model for."""
    if result.form == OFFICIAL:
        raise CheckpointError('the state dict has official names already')
    norm = [f'norm3.{leaf}' for leaf in ('weight', 'bias')]
    if result.family in OUTPUT_NORMS:
        result.missing += [k for k in norm if k not in result.tensors]
    if result.family != 'deit' and len(result.layout.stages) < NUM_STAGES:
        result.missing.append(f'stages.{len(result.layout.stages)}.blocks')
    if not result.layout.residual:
        result.missing.append('attn.kernel_predictor')
    if result.unknown or result.missing:
        raise CheckpointError(
            f'{result.variant} has no official form: {describe_misfit(result)}'
        )


def _official_tensors(
    key: str, tensor: Tensor, family: str
) -> dict[str, Tensor]:
    """What one of our tensors is in an official state dict."""
    rule, fields = find_rule(key, family)
    if rule is None and OUTPUT_NORM.read(key):
        return {}
    if not rule.official:
        raise CheckpointError(
            f'{key} belongs to an ablation that the official code does '
            'not have'
        )
    parts = rule.transform.inverse(tensor)
    return {
        pattern.write(fields): part.contiguous()
        for pattern, part in zip(rule.official, parts, strict=True)
    }


def _swin_buffers(result: Translation) -> dict[str, Tensor]:
    """Index and mask buffers of the official softmax blocks.

    The masks belong to the maps of the pretraining size; a model of its own
    kind gets those of its window's published size.
    """
    buffers = {}
    for key, tensor in result.tensors.items():
        if not key.endswith('relative_position_bias_table'):
            continue
        _, fields = find_rule(key, 'swin')
        stage, block = fields['i'], fields['j']
        window = (math.isqrt(tensor.shape[0]) + 1) // 2
        prefix = f'layers.{stage}.blocks.{block}'
        attention = WindowAttention(1, 1, window)
        buffers[f'{prefix}.attn.relative_position_index'] = (
            attention.relative_position_index
        )
        # Windows of 7 at 224 pixels and of 12 at 384: 32 pixels per token of
        # the last stage.
        side = 32 * window // STRIDES[stage]
        layout = WindowLayout.fit((side, side), window, block % 2 == 1, False)
        mask = layout.shift_mask(torch.device('cpu'))
        if mask is not None:
            buffers[f'{prefix}.attn_mask'] = mask
    return buffers

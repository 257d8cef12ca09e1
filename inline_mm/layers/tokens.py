"""Between tokens (B, H * W, C) and maps (B, C, H, W)."""

import torch
from torch import Tensor

from ..compat import is_compiling


def tokens_to_map(x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
    """(B, H * W, C) to a channels-last view (B, C, H, W) of it."""
    return x.reshape(x.shape[0], *hw_shape, x.shape[-1]).permute(0, 3, 1, 2)


def map_to_tokens(x: Tensor) -> Tensor:
    """(B, C, H, W) to a view (B, H * W, C) of it, rows first."""
    return x.flatten(2).transpose(1, 2)


def tokens_to_output(x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
    """(B, H * W, C) to a contiguous (B, C, H, W), for code outside.

    Some operators of mmcv read a map's memory without asking for its strides.
    The gradient is laid out as tokens again: otherwise the residual sums of a
    whole stage would run over strided memory, several times slower.
    """
    if torch.is_grad_enabled() and x.requires_grad:
        x = _Transposed.apply(x)
    else:
        x = _transposed(x)
    return x.unflatten(2, tuple(hw_shape))


class _Transposed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return _transposed(x)

    @staticmethod
    def backward(ctx, grad):
        return _transposed(grad)


def _transposed(x: Tensor) -> Tensor:
    """(B, M, K) to a contiguous (B, K, M)."""
    if x.device.type != 'cpu' or is_compiling():
        return x.transpose(1, 2).contiguous()
    # torch's copy works in blocks, 2.5 times faster, for matrices only.
    out = x.new_empty(x.shape[0], x.shape[2], x.shape[1])
    for target, source in zip(out, x, strict=True):
        target.copy_(source.t())
    return out

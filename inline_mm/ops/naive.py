"""The definitions, written as the paper states them: slow, for tests only.

Every N x N weight exists here. Shapes as in the functions they mirror.
"""

import torch
from torch import Tensor


def naive_inline_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """InLine attention by its weights, arXiv 2412.06590 equation 5."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    num_tokens = k.shape[-2]
    weights = (scores - scores.mean(-1, keepdim=True) + 1) / num_tokens
    return weights @ v


def naive_divide_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Linear attention normalised by division, by its weights."""
    scores = q @ k.transpose(-2, -1)
    return scores / scores.sum(-1, keepdim=True) @ v


def naive_softmax_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax attention by its weights."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return scores.softmax(-1) @ v


def naive_local_residual(
    values: Tensor, kernels: Tensor, hw_shape: tuple[int, int]
) -> Tensor:
    """Depthwise 3x3 cross-correlation as nine shifted products."""
    height, width = hw_shape
    batch, _, channels = values.shape
    grid = values.reshape(batch, height, width, channels)
    padded = torch.nn.functional.pad(grid, (0, 0, 1, 1, 1, 1))
    out = torch.zeros_like(grid)
    for row in range(3):
        for column in range(3):
            window = padded[:, row : row + height, column : column + width]
            tap = kernels[:, :, 3 * row + column]
            out = out + window * tap[:, None, None, :]
    return out.reshape(values.shape)

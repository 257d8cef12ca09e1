"""The definitions, written as the paper states them: slow, for tests only.

Every N x N weight exists here. Shapes as in the functions they mirror.
"""

import math

import torch
from torch import Tensor


def naive_inline_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """InLine attention by its weights, arXiv 2412.06590 equation 5."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    num_tokens = k.shape[-2]
    weights = (scores - scores.mean(-1, keepdim=True) + 1) / num_tokens
    return weights @ v


def naive_divide_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Linear attention normalised by division, by its weights.

    The mean of a row of scores is at least 1e-6 away from zero.
    """
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    mean = scores.mean(-1, keepdim=True)
    sign = torch.where(mean < 0, -1.0, 1.0)
    weights = scores / (sign * mean.abs().clamp(min=1e-6) * k.shape[-2])
    return weights @ v


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


def naive_normalized_relu(x: Tensor) -> Tensor:
    """Row by row: the positive part by its norm, zero if there is none."""
    positive = torch.where(x > 0, x, 0.0)
    rows = [
        row / row.square().sum().sqrt() if row.any() else row
        for row in positive.reshape(-1, x.shape[-1])
    ]
    return torch.stack(rows).reshape(x.shape)


# The kernels of queries; those of the keys are the same, but for the last.
NAIVE_KERNELS = {
    'identity': lambda x: x,
    'relu': lambda x: torch.where(x > 0, x, 0.0),
    'leaky_relu': lambda x: torch.where(x > 0, x, 0.01 * x),
    'exp': lambda x: math.e ** (x / 5),
    'affine_relu': lambda x, a, b: torch.where(
        x @ a.T + b > 0, x @ a.T + b, 0.0
    ),
    'normalized_relu': naive_normalized_relu,
}


def naive_windows(
    hw_shape: tuple[int, int], window_size: int, shifted: bool
) -> tuple[tuple[int, int], tuple[int, int], list[list[tuple[int, int]]]]:
    """The windows of a map, token by token.

    Args:
        hw_shape (tuple[int, int]): H and W of the map, in tokens.
        window_size (int): side of a window; at most the map's along an axis.
        shifted (bool): shift by half a window where an axis holds several.

    Returns:
        tuple: H and W of the padded map, H and W of a window, and for each
        window the rows and columns of its tokens in the padded map.
    """
    window = [min(window_size, side) for side in hw_shape]
    padded = [
        side if side % size == 0 else side + size - side % size
        for side, size in zip(hw_shape, window, strict=True)
    ]
    shift = [
        size // 2 if shifted and side > size else 0
        for side, size in zip(hw_shape, window, strict=True)
    ]
    windows = [
        [
            (
                (top + i + shift[0]) % padded[0],
                (left + j + shift[1]) % padded[1],
            )
            for i in range(window[0])
            for j in range(window[1])
        ]
        for top in range(0, padded[0], window[0])
        for left in range(0, padded[1], window[1])
    ]
    return tuple(padded), tuple(window), windows

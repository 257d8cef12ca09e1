"""The local half of InLine attention: a 3x3 kernel per sample and channel."""

import torch
from torch import Tensor
from torch.nn import functional as F


def local_residual(
    values: Tensor, kernels: Tensor, hw_shape: tuple[int, int]
) -> Tensor:
    """Depthwise 3x3 cross-correlation with a kernel per sample and channel.

    The samples are laid side by side as channels of one channels-last map, in
    which the depthwise convolution runs several times faster on a CPU than
    the same groups in NCHW, and which for B = 1 is a free view.

    While a model is exported with a symbolic batch, it takes the form of
    :func:`shifted_local_residual` instead, whose graph fits every batch.

    Args:
        values (Tensor): values of the tokens, (B, H * W, C), row-major grid.
        kernels (Tensor): (B, C, 9), each row a 3x3 kernel, row-major.
        hw_shape (tuple[int, int]): H and W.

    Returns:
        Tensor: (B, H * W, C); the grid is padded with one ring of zeros.

    Source: arXiv 2412.06590, the local attention residual of section 4.3.
    """
    height, width = hw_shape
    batch, num_tokens, channels = values.shape
    if isinstance(batch, torch.SymInt):
        return shifted_local_residual(values, kernels, hw_shape)
    groups = batch * channels
    grid = values.transpose(0, 1).reshape(1, height, width, groups)
    out = F.conv2d(
        grid.permute(0, 3, 1, 2),
        kernels.reshape(groups, 1, 3, 3).to(values.dtype),
        padding=1,
        groups=groups,
    )
    out = out.permute(0, 2, 3, 1).reshape(num_tokens, batch, channels)
    return out.transpose(0, 1)


def shifted_local_residual(
    values: Tensor, kernels: Tensor, hw_shape: tuple[int, int]
) -> Tensor:
    """The same as nine shifted multiply-adds, in which nothing is grouped.

    A convolution's number of groups is a constant of an exported graph, so
    that the form of :func:`local_residual` would fix the batch. It is the
    faster one everywhere else.

    Args and returns: those of :func:`local_residual`.
    """
    height, width = hw_shape
    batch, num_tokens, channels = values.shape
    grid = values.reshape(batch, height, width, channels)
    grid = F.pad(grid, (0, 0, 1, 1, 1, 1))
    taps = kernels.to(values.dtype)[:, None, None].unbind(-1)
    terms = [
        grid[:, row : row + height, column : column + width]
        * taps[3 * row + column]
        for row in range(3)
        for column in range(3)
    ]
    return sum(terms[1:], terms[0]).reshape(batch, num_tokens, channels)

"""Position tables: resized by comparing grids, never token counts."""

import torch
from torch import Tensor
from torch.nn import functional as F


def resize_position_table(
    table: Tensor,
    grid: tuple[int, int],
    hw_shape: tuple[int, int],
    mode: str,
    num_prefix_tokens: int = 0,
) -> Tensor:
    """An absolute position table on another grid.

    Args:
        table (Tensor): (1, num_prefix_tokens + h * w, C), rows first.
        grid (tuple[int, int]): h and w of the table.
        hw_shape (tuple[int, int]): H and W wanted.
        mode (str): 'bilinear' (PVT) or 'bicubic' (DeiT); corners not aligned.
        num_prefix_tokens (int): leading entries off the grid, kept as they
            are. Defaults to 0.

    Returns:
        Tensor: (1, num_prefix_tokens + H * W, C); `table` itself where the
        grids are equal.
    """
    # A symbolic size (export) can't be compared: it is always resized, which
    # leaves a table of equal grid as it is.
    symbolic = any(isinstance(side, torch.SymInt) for side in hw_shape)
    if not symbolic and tuple(grid) == tuple(hw_shape):
        return table
    prefix, positions = table.split(
        [num_prefix_tokens, table.shape[1] - num_prefix_tokens], dim=1
    )
    positions = positions.reshape(1, *grid, -1).permute(0, 3, 1, 2)
    positions = F.interpolate(
        positions, hw_shape, mode=mode, align_corners=False
    )
    positions = positions.flatten(2).transpose(1, 2)
    return torch.cat([prefix, positions], dim=1)


def resize_bias_table(table: Tensor, window_size: int) -> Tensor:
    """A relative-position bias table for another window, bicubic.

    Args:
        table (Tensor): ((2 * w - 1)^2, heads) for windows of side w.
        window_size (int): side of the windows wanted, in tokens.

    Returns:
        Tensor: ((2 * window_size - 1)^2, heads); `table` itself where the
        windows are equal.
    """
    source = round(table.shape[0] ** 0.5)
    target = 2 * window_size - 1
    if source == target:
        return table
    grid = table.T.reshape(1, -1, source, source)
    grid = F.interpolate(
        grid, (target, target), mode='bicubic', align_corners=False
    )
    return grid.reshape(-1, target * target).T.contiguous()

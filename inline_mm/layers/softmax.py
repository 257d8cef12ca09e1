"""Windowed softmax attention: the blocks that InLine-Swin keeps."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .heads import check_heads
from .windows import WindowLayout


class WindowAttention(nn.Module):
    """Softmax attention inside windows, with relative position biases.

    Maps normalised tokens (B, H * W, C) and (H, W) to (B, H * W, C). The map
    is padded with zeros (right, bottom) to whole windows after the block's
    norm; padded tokens are attended to, as in the published detectors.

    Args:
        embed_dims (int): number of channels C.
        num_heads (int): number of heads; must divide C.
        window_size (int): side of a window, in tokens.
        shifted (bool): shift the windows by half a window. Defaults to False.
        drop_rate (float): dropout after the output projection.
            Defaults to 0.

    Source: Liu et al., Swin Transformer (arXiv 2103.14030), section 3.2.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        window_size: int,
        shifted: bool = False,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__()
        check_heads(embed_dims, num_heads)
        self.num_heads = num_heads
        self.window_size = window_size
        self.shifted = shifted
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window_size - 1) ** 2, num_heads)
        )
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.register_buffer(
            'relative_position_index',
            _relative_position_index(window_size),
            persistent=False,
        )
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.proj_drop = nn.Dropout(drop_rate)

    def forward(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        """Attend.

        Args:
            x (Tensor): normalised tokens, (B, H * W, C).
            hw_shape (tuple[int, int]): H and W of the grid.

        Returns:
            Tensor: (B, H * W, C).
        """
        layout = WindowLayout.fit(
            hw_shape, self.window_size, self.shifted, shrink=False
        )
        windows = layout.split(x)
        qkv = self.qkv(windows)
        qkv = qkv.reshape(*windows.shape[:2], 3, self.num_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        bias = self._bias(layout.shift_mask(x.device), x.shape[0])
        out = F.scaled_dot_product_attention(q, k, v, bias.to(q.dtype))
        out = out.transpose(1, 2).reshape(windows.shape)
        return layout.merge(self.proj_drop(self.proj(out)))

    def _bias(self, mask: Tensor | None, batch: int) -> Tensor:
        """Position bias and shift mask, (B * windows or 1, heads, n, n)."""
        bias = self.relative_position_bias_table[self.relative_position_index]
        bias = bias.permute(2, 0, 1).unsqueeze(0)
        if mask is None:
            return bias
        return (bias + mask.unsqueeze(1)).repeat(batch, 1, 1, 1)


def _relative_position_index(window_size: int) -> Tensor:
    """Row of the bias table for each pair of tokens of a window, (n, n)."""
    side = torch.arange(window_size)
    y, x = (
        axis.flatten() for axis in torch.meshgrid(side, side, indexing='ij')
    )
    offset = window_size - 1
    rows = y[:, None] - y[None, :] + offset
    columns = x[:, None] - x[None, :] + offset
    return rows * (2 * window_size - 1) + columns

"""Striped softmax attention: the blocks that InLine-CSwin keeps."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .heads import check_heads
from .tokens import map_to_tokens, tokens_to_map
from .windows import WindowLayout


class StripeAttention(nn.Module):
    """Softmax attention inside stripes of the map, with LePE.

    Maps normalised tokens (B, H * W, C) and (H, W) to (B, H * W, C). Two
    branches share channels and heads: the first half attends inside vertical
    stripes (H x width), the second inside horizontal ones (width x W). Without
    a width there is one branch, which attends to the whole map.

    Queries, keys and values are padded with zeros to whole stripes, half of
    it on each side; padded tokens are attended to. The number of branches
    never depends on the size of the map: a smaller one is padded as well.

    LePE, a depthwise 3x3 convolution of the values, sees one stripe at a
    time: it is padded with zeros at the stripe's border.

    Args:
        embed_dims (int): number of channels C.
        num_heads (int): number of heads; must divide C, and be even where
            there are two branches.
        stripe_width (int | None): width of a stripe, in tokens; None for the
            whole map.
        drop_rate (float): dropout after the output projection.
            Defaults to 0.

    Source: Dong et al., CSWin Transformer (arXiv 2107.00652), sections 3.2
    and 3.3; padding as in its published segmentation code.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        stripe_width: int | None,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__()
        branches = 1 if stripe_width is None else 2
        check_heads(embed_dims, num_heads, branches)
        self.stripe_width = stripe_width
        self.branch_heads = num_heads // branches
        width = embed_dims // branches
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.lepe = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=1, groups=width)
            for _ in range(branches)
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
        stripes = self._stripes(hw_shape)
        # Channels of qkv: q, k, v; within each the branches; then the heads.
        qkv = self.qkv(x).unflatten(-1, (3, len(stripes), -1)).unbind(3)
        out = [
            self._attend(part.flatten(2), lepe, hw_shape, stripe)
            for part, lepe, stripe in zip(qkv, self.lepe, stripes, strict=True)
        ]
        return self.proj_drop(self.proj(torch.cat(out, dim=-1)))

    def _stripes(self, hw_shape: tuple[int, int]) -> list[tuple[int, int]]:
        """Height and width of the stripes of each branch."""
        if self.stripe_width is None:
            return [hw_shape]
        height, width = hw_shape
        return [(height, self.stripe_width), (self.stripe_width, width)]

    def _attend(
        self,
        qkv: Tensor,
        lepe: nn.Conv2d,
        hw_shape: tuple[int, int],
        stripe: tuple[int, int],
    ) -> Tensor:
        """One branch: (B, H * W, 3 C') to (B, H * W, C')."""
        layout = WindowLayout(hw_shape, stripe, centred=True)
        qkv = layout.split(qkv)
        heads = qkv.unflatten(-1, (3, self.branch_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v)
        out = out.transpose(1, 2).flatten(2)
        values = qkv[..., -out.shape[-1] :]
        local = lepe(tokens_to_map(values, stripe))
        return layout.merge(out + map_to_tokens(local))

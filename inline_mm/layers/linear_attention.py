"""The linear attentions that InLine is compared with, as layers."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from ..ops import (
    angular_attention,
    cosine_attention,
    efficient_attention,
    elu_attention,
    focused_attention,
    hydra_attention,
)
from .heads import check_heads
from .tokens import map_to_tokens, tokens_to_map
from .windows import WindowLayout


@dataclass(frozen=True)
class Design:
    """One linear attention.

    Args:
        attend (Callable): q, k, v (B, heads, N, head_dim) to the same shape.
        depthwise (int): side of the depthwise convolution of the values that
            belongs to it; 0 is none. Defaults to 0.
    """

    attend: Callable[[Tensor, Tensor, Tensor], Tensor]
    depthwise: int = 0


LINEAR_ATTENTIONS = {
    'elu': Design(elu_attention),
    'efficient': Design(efficient_attention),
    'hydra': Design(hydra_attention),
    'angular': Design(angular_attention, depthwise=3),
    'focused': Design(focused_attention, depthwise=5),
    'cosine': Design(cosine_attention),
}


class LinearAttention(nn.Module):
    """A linear attention other than InLine, between the same projections.

    Maps normalised tokens (B, N, C) and their grid (H, W) to (B, N, C), with
    N = `num_prefix_tokens` + H * W.

    Args:
        embed_dims (int): number of channels C.
        num_heads (int): number of heads; must divide C.
        attention (str): a name of `LINEAR_ATTENTIONS`: 'elu', 'efficient',
            'hydra', 'angular', 'focused' or 'cosine'; see the function of
            that name in `inline_mm.ops.linear_attentions` for its source.
        num_prefix_tokens (int): leading tokens off the grid (DeiT's class
            token): they attend, but get no depthwise term. Defaults to 0.
        drop_rate (float): dropout after the output projection.
            Defaults to 0.
        window_size (int | None): attend inside windows of this side, as
            `InLineAttention` does. Defaults to None, the whole map.
        shifted (bool): shift the windows by half a window. Defaults to False.

    What the functions leave to the layer: 'angular' and 'focused' add a
    depthwise convolution of the values, 3x3 and 5x5, with a kernel for each
    channel. Sides and sharing of these kernels, position tables of keys and
    learnt scales in the authors' code weren't compared with.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attention: str,
        num_prefix_tokens: int = 0,
        drop_rate: float = 0.0,
        window_size: int | None = None,
        shifted: bool = False,
    ) -> None:
        super().__init__()
        check_heads(embed_dims, num_heads)
        if attention not in LINEAR_ATTENTIONS:
            names = ', '.join(map(repr, LINEAR_ATTENTIONS))
            raise ValueError(
                f"attention must be one of {names}, or 'inline' in a "
                f'backbone, got {attention!r}'
            )
        design = LINEAR_ATTENTIONS[attention]
        self.num_heads = num_heads
        self.window_size = window_size
        self.shifted = shifted
        self.num_prefix_tokens = num_prefix_tokens
        self.attend = design.attend
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.depthwise = None
        if design.depthwise:
            self.depthwise = nn.Conv2d(
                embed_dims,
                embed_dims,
                design.depthwise,
                padding=design.depthwise // 2,
                groups=embed_dims,
            )
        self.proj = nn.Linear(embed_dims, embed_dims)
        self.proj_drop = nn.Dropout(drop_rate)

    def forward(
        self,
        x: Tensor,
        hw_shape: tuple[int, int],
        pooled_from: Tensor | None = None,
    ) -> Tensor:
        """Attend.

        Args:
            x (Tensor): normalised tokens, (B, N, C).
            hw_shape (tuple[int, int]): H and W of the grid.
            pooled_from (Tensor | None): what `InLineAttention` predicts its
                kernels from; nothing is predicted here. Defaults to None.

        Returns:
            Tensor: (B, N, C).
        """
        if self.window_size is None:
            return self._attend(x, hw_shape)
        layout = WindowLayout.fit(
            hw_shape, self.window_size, self.shifted, shrink=True
        )
        return layout.merge(self._attend(layout.split(x), layout.window))

    def _attend(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        batch, num_tokens, channels = x.shape
        q, k, v = self.qkv(x).split(channels, dim=-1)
        local = self._local(v, hw_shape)
        heads = (batch, num_tokens, self.num_heads, -1)
        q, k, v = (part.reshape(heads).transpose(1, 2) for part in (q, k, v))
        out = self.attend(q, k, v).transpose(1, 2).reshape(x.shape)
        if local is not None:
            out = out + local
        return self.proj_drop(self.proj(out))

    def _local(
        self, values: Tensor, hw_shape: tuple[int, int]
    ) -> Tensor | None:
        """The depthwise term (B, N, C), zero at the prefix tokens."""
        if self.depthwise is None:
            return None
        prefix = self.num_prefix_tokens
        grid = tokens_to_map(values[:, prefix:], hw_shape)
        local = map_to_tokens(self.depthwise(grid))
        return F.pad(local, (0, 0, prefix, 0)) if prefix else local

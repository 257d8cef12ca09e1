"""The transformer block that all families share."""

import torch
from mmcv.cnn.bricks import DropPath, Linear
from mmcv.cnn.bricks.transformer import FFN
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..compat import is_compiling, is_cpu_autocast_enabled
from ..ops import feed_forward_in_chunks

# Hidden values of a chunk, which so stays in a core's cache, and from how
# many on chunks pay: measured on CPUs (docs/performance.md).
CHUNK = 2**18
CHUNK_FROM = 6 * 10**6
# In training hidden values are made twice: with more channels that costs more
# than what it spares.
TRAIN_CHANNELS = 192


class Block(nn.Module):
    """Pre-norm block: attention, then a feed-forward network.

    Args:
        embed_dims (int): number of channels C.
        attn (nn.Module): maps normalised tokens (B, N, C) and (H, W) to
            (B, N, C).
        mlp_ratio (float): hidden channels of the feed-forward network, in C.
        norm_eps (float): eps of the layer norms.
        drop_rate (float): dropout of the feed-forward network.
            Defaults to 0.
        drop_path_rate (float): stochastic depth of both branches.
            Defaults to 0.
        pool_input (bool): the attention predicts its 3x3 kernels from the
            mean of the block's input instead of the normalised one (CSwin).
            Defaults to False.
        with_cp (bool): recompute the block in the backward pass instead of
            storing what lies inside. Defaults to False.
    """

    def __init__(
        self,
        embed_dims: int,
        attn: nn.Module,
        mlp_ratio: float,
        norm_eps: float,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        pool_input: bool = False,
        with_cp: bool = False,
    ) -> None:
        super().__init__()
        self.pool_input = pool_input
        self.with_cp = with_cp
        self.norm1 = nn.LayerNorm(embed_dims, eps=norm_eps)
        self.attn = attn
        self.drop_path = DropPath(drop_path_rate)
        self.norm2 = nn.LayerNorm(embed_dims, eps=norm_eps)
        self.ffn = FFN(
            embed_dims,
            int(mlp_ratio * embed_dims),
            ffn_drop=drop_rate,
            act_cfg=dict(type='GELU'),
            dropout_layer=dict(type='DropPath', drop_prob=drop_path_rate),
        )

    def forward(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        """(B, N, C) to (B, N, C); H and W of the grid in `hw_shape`."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(self._forward, x, hw_shape, use_reentrant=False)
        return self._forward(x, hw_shape)

    def _forward(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        pooled_from = (x,) if self.pool_input else ()
        x = x + self.drop_path(
            self.attn(self.norm1(x), hw_shape, *pooled_from)
        )
        if not self._pays_in_chunks(x):
            return self._feed_forward(x)
        tokens = x.flatten(0, 1)
        rows = max(1, CHUNK // self.ffn.feedforward_channels)
        if torch.is_grad_enabled():
            first, second = self._linears()
            out = feed_forward_in_chunks(
                self.norm2(tokens),
                *(first.weight, first.bias, second.weight, second.bias),
                rows,
            )
            return x + self.ffn.dropout_layer(out.view_as(x))
        # The sum is a tensor of our own: each chunk is replaced by its result.
        for chunk in tokens.split(rows):
            chunk.copy_(self._feed_forward(chunk))
        return tokens.view_as(x)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.ffn(self.norm2(x), identity=x)

    def _linears(self) -> tuple[nn.Module, nn.Module]:
        """The two layers of the feed-forward network."""
        return self.ffn.layers[0][0], self.ffn.layers[1]

    def _pays_in_chunks(self, x: Tensor) -> bool:
        """Whether the feed-forward half should work on a few tokens at once.

        Its hidden layer is the largest tensor of a block and needn't exist as
        a whole. A compiler would unroll the loop.
        """
        hidden = x.shape[0] * x.shape[1] * self.ffn.feedforward_channels
        if is_compiling() or x.device.type != 'cpu' or hidden <= CHUNK_FROM:
            return False
        if not torch.is_grad_enabled():
            # Dropped paths are drawn per sample, so that samples stay apart.
            return not self.training
        # The layers give their parameters, and aren't called: not if they
        # are others (LoRA), or if something lies between (dropout, autocast).
        return (
            self.ffn.embed_dims <= TRAIN_CHANNELS
            and all(type(layer) is Linear for layer in self._linears())
            and not is_cpu_autocast_enabled()
            and not (self.training and self.ffn.layers[2].p)
        )

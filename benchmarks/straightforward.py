"""InLine attention written down as the paper has it: what ours is timed by.

Nothing here is fast on purpose, and nothing is slow on purpose: each step of
the paper is a pass of its own, as in a first implementation. Outputs and
gradients equal ours, with the same parameters.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from inline_mm.layers import Block, InLineAttention
from inline_mm.layers.kernels import apply_kernel
from inline_mm.ops import inline_attention


class StraightforwardAttention(nn.Module):
    r"""InLine attention with separate passes and a convolution in NCHW.

    One projection gives q, k and v; :math:`K^T V`, mean(k) and mean(v) are
    taken of each head; :math:`out = q M + \mathrm{mean}(v)`; the local
    residual is a grouped convolution of an NCHW map whose groups are batch
    times channels; the output projection comes last.

    Source: arXiv 2412.06590, sections 4.1 to 4.3.

    Args:
        layer (InLineAttention): the layer to imitate, with global attention
            and the published normalisation; its parameters are shared, not
            copied.

    Raises:
        ValueError: if the layer has windows or another normalisation.
    """

    def __init__(self, layer: InLineAttention) -> None:
        super().__init__()
        if layer.window_size is not None or (
            layer.attend is not inline_attention
        ):
            raise ValueError(
                'the straightforward formulation is global and subtracts: '
                "expected window_size=None and normalization='subtract'"
            )
        self.num_heads = layer.num_heads
        self.num_prefix_tokens = layer.num_prefix_tokens
        self.kernel = layer.kernel
        self.qkv = layer.qkv
        self.kernel_predictor = layer.kernel_predictor
        self.lepe = layer.lepe
        self.proj = layer.proj
        self.proj_drop = layer.proj_drop

    def forward(
        self,
        x: Tensor,
        hw_shape: tuple[int, int],
        pooled_from: Tensor | None = None,
    ) -> Tensor:
        """As `InLineAttention`: (B, N, C) to (B, N, C)."""
        batch, num_tokens, channels = x.shape
        head_dim = channels // self.num_heads
        qkv = self.qkv(x).reshape(
            batch, num_tokens, 3, self.num_heads, head_dim
        )
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = apply_kernel(self.kernel, q, k)
        scale = head_dim**-0.5
        mean_key = k.mean(-2, keepdim=True)
        mean_value = v.mean(-2, keepdim=True)
        matrix = (k * (scale / num_tokens)).transpose(-2, -1) @ v
        matrix = matrix - scale * mean_key.transpose(-2, -1) @ mean_value
        out = q @ matrix + mean_value
        out = out.transpose(1, 2).reshape(batch, num_tokens, channels)
        values = v.transpose(1, 2).reshape(batch, num_tokens, channels)
        pooled_from = x if pooled_from is None else pooled_from
        for local in self._local_terms(values, hw_shape, pooled_from):
            out = out + local
        return self.proj_drop(self.proj(out))

    def _local_terms(
        self, values: Tensor, hw_shape: tuple[int, int], pooled_from: Tensor
    ) -> Iterator[Tensor]:
        """Each local term (B, N, C), zero at the prefix tokens."""
        prefix = self.num_prefix_tokens
        batch, num_tokens, channels = values.shape
        grid = values[:, prefix:].transpose(1, 2)
        grid = grid.reshape(batch, channels, *hw_shape).contiguous()
        terms = []
        if self.kernel_predictor is not None:
            groups = batch * channels
            pooled = pooled_from.mean(1).unsqueeze(-1)
            kernels = self.kernel_predictor(pooled)
            residual = F.conv2d(
                grid.reshape(1, groups, *hw_shape),
                kernels.reshape(groups, 1, 3, 3),
                padding=1,
                groups=groups,
            )
            terms.append(residual)
        if self.lepe is not None:
            terms.append(self.lepe(grid))
        for term in terms:
            term = term.reshape(batch, channels, num_tokens - prefix)
            term = term.transpose(1, 2)
            yield F.pad(term, (0, 0, prefix, 0)) if prefix else term


class StraightforwardBlock(nn.Module):
    """A block whose feed-forward network sees all tokens at once.

    Args:
        block (Block): the block to imitate; its parameters are shared. InLine
            attention becomes `StraightforwardAttention`, other attention
            stays.
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.pool_input = block.pool_input
        self.with_cp = block.with_cp
        self.norm1 = block.norm1
        self.attn = block.attn
        if isinstance(block.attn, InLineAttention):
            self.attn = StraightforwardAttention(block.attn)
        self.drop_path = block.drop_path
        self.norm2 = block.norm2
        self.ffn_layers = block.ffn.layers

    def forward(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        """(B, N, C) to (B, N, C); H and W of the grid in `hw_shape`."""
        if self.with_cp and torch.is_grad_enabled():
            return checkpoint(self._forward, x, hw_shape, use_reentrant=False)
        return self._forward(x, hw_shape)

    def _forward(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        pooled_from = (x,) if self.pool_input else ()
        attended = self.attn(self.norm1(x), hw_shape, *pooled_from)
        x = x + self.drop_path(attended)
        return x + self.drop_path(self.ffn_layers(self.norm2(x)))


def make_straightforward(model: nn.Module) -> None:
    """Puts the straightforward formulation into every block of a backbone.

    Args:
        model (nn.Module): a backbone of ours, changed in place.

    Raises:
        ValueError: if it has no InLine block, or one that has windows or
            another normalisation.
    """
    if not any(isinstance(m, InLineAttention) for m in model.modules()):
        raise ValueError(
            f'{type(model).__name__} has no InLine block, expected a '
            'backbone of inline_mm'
        )
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, Block):
                setattr(parent, name, StraightforwardBlock(child))

"""The InLine attention layer: projections, global part, local residual."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..compat import is_compiling
from ..ops import (
    divide_attention,
    fold_inline_attention,
    inline_attention,
    local_residual,
    softmax_attention,
    token_moments,
)
from ..ops.precision import statistics_dtype
from .heads import check_heads
from .kernels import KERNELS, apply_kernel
from .tokens import map_to_tokens, tokens_to_map
from .windows import WindowLayout

# The folded form needs more small products: measured, the two forms take the
# same time at 2 C tokens, backward pass included.
FOLD_FROM = 2

NORMALIZATIONS = {
    'subtract': inline_attention,
    'divide': divide_attention,
    'softmax': softmax_attention,
}


def _choose(table: dict, name: str, what: str):
    if name not in table:
        raise ValueError(
            f'{what} must be one of {", ".join(map(repr, table))}, got '
            f'{name!r}'
        )
    return table[name]


class InLineAttention(nn.Module):
    """Injective linear attention with its local residual.

    Maps normalised tokens (B, N, C) and their grid (H, W) to (B, N, C), with
    N = `num_prefix_tokens` + H * W.

    Args:
        embed_dims (int): number of channels C.
        num_heads (int): number of heads; must divide C.
        kernel (str): the kernel of queries and keys: 'identity', 'relu',
            'leaky_relu', 'exp' (exp(0.2 x)), 'affine_relu' (relu(A x + b)) or
            'normalized_relu', of the queries alone. Defaults to 'identity',
            as in every published model.
        normalization (str): 'subtract' (InLine), 'divide' or 'softmax'.
            Defaults to 'subtract'.
        local_residual (bool): add the depthwise 3x3 convolution of the values
            with the kernels predicted from the token mean. Defaults to True.
        window_size (int | None): attend inside windows of this side; None
            attends to the whole map, as every published model does at its
            size. Defaults to None.
        shifted (bool): shift the windows by half a window (no mask: the
            published attention ignores it). Defaults to False.
        num_prefix_tokens (int): leading tokens off the grid (DeiT's class
            token): they attend, but get no local residual. Defaults to 0.
        lepe (bool): add a static depthwise 3x3 convolution of the values as
            well (CSwin). Defaults to False.
        drop_rate (float): dropout after the output projection.
            Defaults to 0.

    With the identity kernel and many tokens, queries and keys are never made
    (`inline_mm.ops.folded`): `qkv` and `proj` then give their parameters, and
    aren't called.

    'normalized_relu' is for the paper's non-injective softmax: with
    normalization='softmax' it makes queries of one direction, or with the
    same positive part, attend alike. We know this ablation from a summary
    without a formula; ours is relu(q) / |relu(q)| for each head, zero where
    no channel is positive, and leaves the keys untouched.

    Attributes:
        fold (bool): whether that may happen; False computes head by head.

    Source: arXiv 2412.06590; behaviour of the official classification models
    as recorded in the golden data.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        kernel: str = 'identity',
        normalization: str = 'subtract',
        local_residual: bool = True,
        window_size: int | None = None,
        shifted: bool = False,
        num_prefix_tokens: int = 0,
        lepe: bool = False,
        drop_rate: float = 0.0,
    ) -> None:
        super().__init__()
        check_heads(embed_dims, num_heads)
        self.num_heads = num_heads
        self.window_size = window_size
        self.shifted = shifted
        self.num_prefix_tokens = num_prefix_tokens
        self.attend = _choose(NORMALIZATIONS, normalization, 'normalization')
        make_kernel = _choose(KERNELS, kernel, 'kernel')
        self.fold = kernel == 'identity' and normalization == 'subtract'
        self.kernel = make_kernel(embed_dims // num_heads)
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims)
        self.kernel_predictor = None
        if local_residual:
            grouped = partial(nn.Conv1d, kernel_size=1, groups=num_heads)
            self.kernel_predictor = nn.Sequential(
                grouped(embed_dims, embed_dims),
                nn.GELU(),
                grouped(embed_dims, 9 * embed_dims),
            )
        self.lepe = None
        if lepe:
            self.lepe = nn.Conv2d(
                embed_dims, embed_dims, 3, padding=1, groups=embed_dims
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
            pooled_from (Tensor | None): tokens whose mean the 3x3 kernels are
                predicted from, (B, N, C). Defaults to None, meaning x.

        Returns:
            Tensor: (B, N, C).
        """
        if self.window_size is None:
            return self._attend(x, hw_shape, pooled_from)
        layout = WindowLayout.fit(
            hw_shape, self.window_size, self.shifted, shrink=True
        )
        windows = self._attend(
            layout.split(x),
            layout.window,
            None if pooled_from is None else layout.split(pooled_from),
        )
        return layout.merge(windows)

    def _attend(
        self,
        x: Tensor,
        hw_shape: tuple[int, int],
        pooled_from: Tensor | None,
    ) -> Tensor:
        num_tokens, channels = x.shape[1:]
        # A module in the place of a projection (LoRA) must be called.
        plain = type(self.qkv) is type(self.proj) is nn.Linear
        # Both are exact at any size. A symbolic one (export) has no answer.
        if (
            self.fold
            and plain
            and (
                isinstance(num_tokens, torch.SymInt)
                or num_tokens >= FOLD_FROM * channels
            )
        ):
            return self._attend_folded(x, hw_shape, pooled_from)
        return self._attend_by_heads(x, hw_shape, pooled_from)

    def _attend_by_heads(
        self,
        x: Tensor,
        hw_shape: tuple[int, int],
        pooled_from: Tensor | None,
    ) -> Tensor:
        """The attention as written: queries, keys and values of each head."""
        batch, num_tokens, channels = x.shape
        qkv = self.qkv(x)
        shape = (3, self.num_heads, channels // self.num_heads)
        heads = qkv.reshape(batch, num_tokens, *shape)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        q, k = apply_kernel(self.kernel, q, k)
        out = self.attend(q, k, v)
        out = out.transpose(1, 2).reshape(batch, num_tokens, channels)
        pooled_from = x if pooled_from is None else pooled_from
        local = self._local(
            qkv[..., 2 * channels :], hw_shape, _mean(pooled_from)
        )
        if local is not None:
            out = out + local
        return self.proj_drop(self.proj(out))

    def _attend_folded(
        self,
        x: Tensor,
        hw_shape: tuple[int, int],
        pooled_from: Tensor | None,
    ) -> Tensor:
        """The same without queries and keys, by the moments of the tokens."""
        batch, _, channels = x.shape
        mean, covariance = token_moments(
            x, (channels // self.num_heads) ** -0.5
        )
        matrix, constant = fold_inline_attention(
            mean, covariance, self.qkv.weight, self.qkv.bias, self.num_heads
        )
        values = F.linear(
            x, self.qkv.weight[2 * channels :], self.qkv.bias[2 * channels :]
        )
        pooled = mean if pooled_from is None else _mean(pooled_from)
        local = self._local(values, hw_shape, pooled.to(values.dtype))
        # Autocast leaves in-place products alone.
        x, matrix = x.to(values.dtype), matrix.to(values.dtype)
        del values  # the largest part of an inference's peak
        if local is None:
            out = x @ matrix
        elif is_compiling():
            # Compilers can't replay a write into a view of the convolution.
            out = torch.baddbmm(local, x, matrix)
        else:
            out = local.baddbmm_(x, matrix)
        # A constant of a sample passes the projection as part of its bias.
        weight = self.proj.weight.to(out.dtype)
        bias = F.linear(
            constant.to(self.proj.weight.dtype),
            self.proj.weight,
            self.proj.bias,
        )
        out = torch.baddbmm(
            bias.to(out.dtype), out, weight.mT.expand(batch, -1, -1)
        )
        return self.proj_drop(out)

    def _local(
        self, values: Tensor, hw_shape: tuple[int, int], pooled: Tensor
    ) -> Tensor | None:
        """The local terms (B, N, C), zero at the prefix tokens."""
        prefix = self.num_prefix_tokens
        values = values[:, prefix:]
        terms = []
        if self.kernel_predictor is not None:
            # A 3x3 kernel per sample and channel, (B, C, 9).
            kernels = self.kernel_predictor(pooled.mT)
            kernels = kernels.reshape(*values.shape[::2], 9)
            terms.append(local_residual(values, kernels, hw_shape))
        if self.lepe is not None:
            grid = self.lepe(tokens_to_map(values, hw_shape))
            terms.append(map_to_tokens(grid))
        if not terms:
            return None
        local = sum(terms[1:], terms[0])
        if prefix:
            local = F.pad(local, (0, 0, prefix, 0))
        return local


def _mean(tokens: Tensor) -> Tensor:
    """Mean over the tokens, taken in float32 at least, (B, 1, C)."""
    dtype = statistics_dtype(tokens.dtype)
    return tokens.mean(1, keepdim=True, dtype=dtype).to(tokens.dtype)

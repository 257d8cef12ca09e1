"""The kernels of queries and keys: identity, and the paper's ablations.

Source: arXiv 2412.06590, its ablations; the formula of 'normalized_relu' is
ours, see `InLineAttention`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..ops.precision import statistics_dtype


class _Exp(nn.Module):
    """exp(0.2 x), the exponential kernel of the paper's ablation."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(0.2 * x)


class _AffineReLU(nn.Sequential):
    """relu(A x + b) over the channels of a head, one A for all heads."""

    def __init__(self, head_dim: int) -> None:
        super().__init__(nn.Linear(head_dim, head_dim), nn.ReLU())


class _NormalizedReLU(nn.Module):
    """relu(q) / |relu(q)|, zero where relu(q) is, in float32 at least."""

    def forward(self, x: Tensor) -> Tensor:
        positive = x.to(statistics_dtype(x.dtype)).relu()
        return F.normalize(positive, dim=-1).to(x.dtype)


# Applied to (B, heads, N, head_dim), see `apply_kernel`.
KERNELS = {
    'identity': lambda head_dim: nn.Identity(),
    'relu': lambda head_dim: nn.ReLU(),
    'leaky_relu': lambda head_dim: nn.LeakyReLU(),
    'exp': lambda head_dim: _Exp(),
    'affine_relu': _AffineReLU,
    'normalized_relu': lambda head_dim: _NormalizedReLU(),
}


def apply_kernel(
    kernel: nn.Module, q: Tensor, k: Tensor
) -> tuple[Tensor, Tensor]:
    """Queries and keys after a kernel, shapes (B, heads, N, head_dim).

    It is the same for both, except that 'normalized_relu' leaves the keys as
    they are.

    Args:
        kernel (nn.Module): what a function of `KERNELS` made.
        q (Tensor): queries.
        k (Tensor): keys.

    Returns:
        tuple[Tensor, Tensor]: both, same shapes.
    """
    return kernel(q), k if isinstance(kernel, _NormalizedReLU) else kernel(k)

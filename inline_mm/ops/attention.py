"""Global attention over N tokens: InLine, and the forms it is compared with.

All functions map q, k, v of shape (B, heads, N, head_dim) to an output of the
same shape. Source: arXiv 2412.06590 (InLine, equations of section 4);
`inline_mm.ops.naive` holds the definitions that these are tested against.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from .precision import statistics_dtype, without_autocast

# A mean of products below this is taken as this, with its sign kept.
DIVIDE_EPS = 1e-6


def inline_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Injective linear attention in closed form, in O(N head_dim^2).

    The weights :math:`w_{ij} = (s\,q_i k_j - \mathrm{mean}_j(s\,q_i k_j) +
    1) / N` with :math:`s = d^{-1/2}` sum to one over j and never exist here:

    .. math:: out_i = q_i M + \mathrm{mean}(v), \quad M = s\,\mathrm{Cov}(k, v)

    The keys are centred before the product, so that a mean shared by all
    tokens costs no digits, and the factor s / N enters before the sum. Means
    and M are computed in float32 under autocast.

    Args:
        q (Tensor): queries, (B, heads, N, head_dim).
        k (Tensor): keys, same shape.
        v (Tensor): values, same shape.

    Returns:
        Tensor: (B, heads, N, head_dim), in the dtype of q.
    """
    num_tokens, head_dim = k.shape[-2:]
    with without_autocast(q.device.type):
        dtype = statistics_dtype(q.dtype)
        values = v.to(dtype)
        keys = k.to(dtype)
        keys = (keys - keys.mean(-2, keepdim=True)) * (
            head_dim**-0.5 / num_tokens
        )
        matrix = (keys.transpose(-2, -1) @ values).to(q.dtype)
        mean_value = values.mean(-2, keepdim=True).to(q.dtype)
        return q @ matrix + mean_value


def divide_attention(
    q: Tensor, k: Tensor, v: Tensor, least: float = DIVIDE_EPS
) -> Tensor:
    r"""Linear attention normalised by division, the InLine paper's contrast.

    :math:`out_i = q_i \sum_j k_j^T v_j / (q_i \sum_j k_j^T)` (Katharopoulos
    et al., arXiv 2006.16236, equation 5). The denominator, taken as the mean
    of the scaled products, can vanish: its magnitude is kept at `least` or
    above. (Implementations for positive kernels add as much to it; to a
    negative one that could make the zero.) Where the guard holds, the weights
    don't sum to one, and the gradient passes through the numerator alone.

    In fp16 this fails near such zeros, though all sums here are in float32:
    the denominator of a query nearly orthogonal to the mean key consists of
    the digits that rounding the query cut off. With a mean key of (1, 1) and
    the query (1 + x, -1): at x = 0.002 the gradient of the weights is
    infinite, at 0.0014 they are wrong by 40 %, at 0.0004 infinite themselves.
    InLine's weights of the same queries are right to 0.1 %. Use float32, or a
    positive kernel, whose denominators don't cancel; bfloat16 doesn't
    overflow, but rounds eight times more coarsely.

    Args:
        q (Tensor): queries, (B, heads, N, head_dim).
        k (Tensor): keys, same shape.
        v (Tensor): values, same shape.
        least (float): least magnitude of the denominator. Defaults to
            `DIVIDE_EPS`; where all products are positive nothing cancels, and
            much less will do.

    Returns:
        Tensor: (B, heads, N, head_dim), in the dtype of q.
    """
    num_tokens, head_dim = k.shape[-2:]
    with without_autocast(q.device.type):
        dtype = statistics_dtype(q.dtype)
        keys = k.to(dtype) * (head_dim**-0.5 / num_tokens)
        queries = q.to(dtype)
        numerator = queries @ (keys.transpose(-2, -1) @ v.to(dtype))
        total = queries @ keys.sum(-2).unsqueeze(-1)
        guard = torch.full_like(total, least)
        guard = torch.where(total < 0, -guard, guard)
        total = torch.where(total.abs() < least, guard, total)
        return (numerator / total).to(q.dtype)


def softmax_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax attention by `scaled_dot_product_attention`, in O(N^2).

    Args:
        q (Tensor): queries, (B, heads, N, head_dim).
        k (Tensor): keys, same shape.
        v (Tensor): values, same shape.

    Returns:
        Tensor: (B, heads, N, head_dim).
    """
    return F.scaled_dot_product_attention(q, k, v)

r"""Linear attentions that InLine is compared with, from their papers' maths.

Each maps q, k, v of shape (B, heads, N, head_dim) to the same shape without
an N x N tensor. In all but Hydra Attention the weights of a query sum to one:
either they are divided by their sum (where that is zero, all weights are: a
query or all keys without a positive channel), or the features are made so.
Everything here is computed in float32 at least;
`inline_mm.ops.naive_linear` holds the definitions with all weights, which
these are tested against.

Complexity is given for all heads of a sample; d is the head's dimension, C
the number of channels, heads times d.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from .attention import divide_attention
from .precision import statistics_dtype, without_autocast

FOCUS = 3  # the exponent p of the focused function


def elu_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Linear attention with the features elu(x) + 1, in O(N C d).

    .. math:: w_{ij} \propto \phi(q_i) \cdot \phi(k_j), \quad
        \phi(x) = \mathrm{elu}(x) + 1

    Source: Katharopoulos et al., Transformers are RNNs (arXiv 2006.16236),
    equations 5 and 7.

    Args:
        q (Tensor): queries, (B, heads, N, head_dim).
        k (Tensor): keys, same shape.
        v (Tensor): values, same shape.

    Returns:
        Tensor: (B, heads, N, head_dim), in the dtype of q.
    """
    with without_autocast(q.device.type):
        queries, keys, values = (_widen(tensor) for tensor in (q, k, v))
        out = _divide(_elu_plus_1(queries), _elu_plus_1(keys), values)
        return out.to(q.dtype)


def efficient_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Efficient Attention: two softmaxes instead of one, in O(N C d).

    .. math:: W = \mathrm{softmax}_d(Q)\, \mathrm{softmax}_N(K)^T

    The queries' softmax runs over the channels of a head, the keys' over the
    tokens; so the weights of a query sum to one. No scale: the paper's form
    with softmax normalisation has none.

    Source: Shen et al., Efficient Attention (arXiv 1812.01243), section 3.

    Args and returns: those of :func:`elu_attention`.
    """
    with without_autocast(q.device.type):
        queries = _widen(q).softmax(-1)
        keys = _widen(k).softmax(-2)
        matrix = keys.transpose(-2, -1) @ _widen(v)
        return (queries @ matrix).to(q.dtype)


def hydra_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Hydra Attention: a head for every channel, in O(N C).

    .. math:: out_i = \hat q_i \odot \sum_j \hat k_j \odot v_j, \quad
        \hat x = x / \lVert x \rVert

    The norm is that of a token's C channels; how these are arranged in heads
    makes no difference. The weights aren't normalised (they are the cosine
    similarity split into its C terms), so the output grows with N: its
    magnitude changes with the size of the image.

    Source: Bolya et al., Hydra Attention (arXiv 2209.07484), section 3, with
    the cosine similarity kernel.

    Args and returns: those of :func:`elu_attention`.
    """
    with without_autocast(q.device.type):
        queries, keys = (_unit_tokens(_widen(tensor)) for tensor in (q, k))
        total = (keys * _widen(v)).sum(-2, keepdim=True)
        return (queries * total).to(q.dtype)


def angular_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""The linear part of Linear Angular Attention, in O(N C d).

    .. math:: w_{ij} \propto \tfrac12 + \tfrac1\pi\, \hat q_i \cdot \hat k_j,
        \quad \hat x = x / \lVert x \rVert

    which are the first two terms of the angular kernel
    :math:`1 - \arccos(\hat q_i \cdot \hat k_j) / \pi`. The division by
    their sum, the general form of kernel attention, is ours; the sum lies
    between 0.18 and 0.82 for each key, so it needs no guard. In the place of
    the terms of higher order the layer has a depthwise residual, as the paper
    does. The sparse softmax attention that the paper adds in training only is
    left out.

    Source: You et al., Castling-ViT (arXiv 2211.10526), section 4.

    Args and returns: those of :func:`elu_attention`.
    """
    with without_autocast(q.device.type):
        queries, keys = (F.normalize(_widen(x), dim=-1) for x in (q, k))
        values = _widen(v)
        keys = keys / (math.pi * k.shape[-2])
        matrix = keys.transpose(-2, -1) @ values
        numerator = queries @ matrix + values.mean(-2, keepdim=True) / 2
        total = queries @ keys.sum(-2).unsqueeze(-1) + 0.5
        return (numerator / total).to(q.dtype)


def focused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Focused linear attention (FLatten), in O(N C d).

    .. math:: w_{ij} \propto f_p(q_i) \cdot f_p(k_j), \quad
        f_p(x) = \frac{\lVert x_+ \rVert}{\lVert x_+^p \rVert} x_+^p,
        \quad x_+ = \mathrm{relu}(x)

    with p = 3 and the power taken by element: it turns features towards their
    largest channels and keeps their norm, here of each head. The depthwise
    convolution of the values is the layer's.

    Source: Han et al., FLatten Transformer (arXiv 2308.00442), section 4.

    Args and returns: those of :func:`elu_attention`.
    """
    with without_autocast(q.device.type):
        queries, keys = (_focus(_widen(tensor)) for tensor in (q, k))
        return _divide(queries, keys, _widen(v)).to(q.dtype)


def cosine_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""cosFormer: relu features, reweighted by distance, in O(N C d).

    .. math:: w_{ij} \propto \mathrm{relu}(q_i) \cdot \mathrm{relu}(k_j)
        \cos\left(\frac\pi2 \cdot \frac{i - j}{N}\right)

    The cosine of a difference is a sum of two products, so the features have
    2 d channels. Positions are those of a sequence, as in the paper: of the
    tokens row by row, here.

    Source: Qin et al., cosFormer (arXiv 2202.08791), section 3.

    Args and returns: those of :func:`elu_attention`.
    """
    with without_autocast(q.device.type):
        num_tokens = q.shape[-2]
        dtype = statistics_dtype(q.dtype)
        angle = torch.arange(num_tokens, dtype=dtype, device=q.device)
        angle = (angle * (math.pi / 2 / num_tokens)).unsqueeze(-1)
        queries, keys = (
            torch.cat([x * angle.cos(), x * angle.sin()], dim=-1)
            for x in (_widen(q).relu(), _widen(k).relu())
        )
        return _divide(queries, keys, _widen(v)).to(q.dtype)


def _widen(tensor: Tensor) -> Tensor:
    return tensor.to(statistics_dtype(tensor.dtype))


def _divide(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Division for features that aren't negative: no sum of them cancels.

    The guard is for sums that are zero; its inverse must not overflow in
    their gradient.
    """
    least = math.sqrt(torch.finfo(q.dtype).tiny)
    return divide_attention(q, k, v, least)


def _elu_plus_1(x: Tensor) -> Tensor:
    """exp(x) below zero, x + 1 above: elu(x) + 1 loses small values."""
    return x.clamp(max=0).exp() + x.relu()


def _unit_tokens(x: Tensor) -> Tensor:
    """(B, heads, N, head_dim) by the norm of each token's channels."""
    return (
        F.normalize(x.transpose(1, 2).flatten(2), dim=-1)
        .view(x.shape[0], x.shape[2], x.shape[1], x.shape[3])
        .transpose(1, 2)
    )


def _focus(x: Tensor) -> Tensor:
    """The focused function; unit vectors' powers don't vanish."""
    x = x.relu()
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    direction = F.normalize(x, dim=-1)
    return norm * F.normalize(direction**FOCUS, dim=-1)

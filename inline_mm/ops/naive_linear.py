"""The linear attentions by their weights: slow, for tests only.

Every N x N weight exists here. Shapes and sources as in the functions of
`linear_attentions` that they mirror.
"""

import math

import torch
from torch import Tensor


def naive_elu_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Weights of the features elu(x) + 1, divided by their sum."""
    q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
    return _divide(q @ k.transpose(-2, -1)) @ v


def naive_efficient_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax of a query's channels times softmax over a channel's keys."""
    return q.softmax(-1) @ k.softmax(-2).transpose(-2, -1) @ v


def naive_hydra_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A head, and N x N weights, for each channel."""
    q, k = (x / x.square().sum((1, 3), keepdim=True).sqrt() for x in (q, k))
    weights = torch.einsum('bhic,bhjc->bhcij', q, k)
    return torch.einsum('bhcij,bhjc->bhic', weights, v)


def naive_angular_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The angular kernel up to its linear term, divided by its sum."""
    q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
    return _divide(0.5 + q @ k.transpose(-2, -1) / math.pi) @ v


def naive_focused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Weights of the focused features, divided by their sum."""
    features = []
    for x in (q, k):
        x = x.relu()
        cube = x * x * x
        ratio = x.norm(dim=-1, keepdim=True) / cube.norm(dim=-1, keepdim=True)
        features.append(ratio * cube)
    return _divide(features[0] @ features[1].transpose(-2, -1)) @ v


def naive_cosine_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Weights of relu features times the cosine of the distance."""
    position = torch.arange(q.shape[-2], dtype=q.dtype)
    distance = (position[:, None] - position[None, :]) / q.shape[-2]
    weights = q.relu() @ k.relu().transpose(-2, -1)
    return _divide(weights * torch.cos(math.pi / 2 * distance)) @ v


def _divide(weights: Tensor) -> Tensor:
    return weights / weights.sum(-1, keepdim=True)

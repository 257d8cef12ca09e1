r"""InLine attention with the identity kernel, without queries and keys.

With k = x Wk + bk and v = x Wv + bv, the matrix of head i is
:math:`M_i = W_{k,i}\, s\,\mathrm{Cov}(x)\, W_{v,i}^T` (the bias of the keys
cancels), and :math:`q_i M_i + \mathrm{mean}(v_i)` is affine in x. So all
heads together are one C x C matrix and one constant per sample, made from the
mean and the covariance of the tokens. In exact arithmetic this is
`inline_attention`; it takes 2 N C^2 products beside the projection of the
values, where that takes 2 N C^2 + 2 N C d, but stores no queries, keys or
outputs of heads, and pays while N is well above C.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from .precision import statistics_dtype, without_autocast


def token_moments(x: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Mean and scaled covariance of the tokens of each sample.

    Computed in float32 at least, whatever autocast says. Tokens of lower
    precision are centred before the product.

    Args:
        x (Tensor): tokens, (B, N, C).
        scale (float): factor of the covariance.

    Returns:
        tuple[Tensor]: the mean, (B, 1, C), and ``scale * Cov(x)``, (B, C, C),
        in float32 or float64.
    """
    with without_autocast(x.device.type):
        if torch.is_grad_enabled() and x.requires_grad:
            return _TokenMoments.apply(x, scale)
        return _token_moments(x, scale)


def _token_moments(x: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    dtype = statistics_dtype(x.dtype)
    mean = x.mean(1, keepdim=True, dtype=dtype)
    if x.dtype == dtype:
        # Uncentred: no copy of the tokens. Digits of a shared mean are lost
        # to its square, as in the products of keys and values themselves.
        square = mean.mT @ mean
        return mean, torch.baddbmm(
            square, x.mT, x, beta=-scale, alpha=scale / x.shape[1]
        )
    centred = x - mean
    return mean, centred.mT @ centred * (scale / x.shape[1])


class _TokenMoments(torch.autograd.Function):
    """`_token_moments` with one product in the backward pass.

    Autograd would take two for x^T x, though the second is the first one
    transposed, and spread the mean's gradient over a tensor of N tokens.
    """

    @staticmethod
    def forward(ctx, x, scale):
        mean, covariance = _token_moments(x, scale)
        ctx.save_for_backward(x, mean)
        ctx.scale = scale
        return mean, covariance

    @staticmethod
    def backward(ctx, grad_mean, grad_covariance):
        x, mean = ctx.saved_tensors
        with without_autocast(x.device.type):
            both = grad_covariance + grad_covariance.mT
            both = both * (ctx.scale / x.shape[1])
            shift = grad_mean / x.shape[1] - mean @ both
            grad = torch.baddbmm(shift, x.to(both.dtype), both)
        return grad.to(x.dtype), None


def fold_inline_attention(
    mean: Tensor, covariance: Tensor, weight: Tensor, bias: Tensor, heads: int
) -> tuple[Tensor, Tensor]:
    """The attention of all heads as one affine map of the tokens.

    Args:
        mean (Tensor): mean of the tokens, (B, 1, C).
        covariance (Tensor): their covariance times head_dim**-0.5, (B, C, C).
        weight (Tensor): weight of the joint projection to queries, keys and
            values, (3 C, C).
        bias (Tensor): its bias, (3 C,).
        heads (int): number of heads.

    Returns:
        tuple[Tensor]: a matrix A, (B, C, C), and a constant c, (B, 1, C), so
        that the heads' outputs side by side are x @ A + c; in the dtype of
        the moments.
    """
    batch, _, channels = mean.shape
    head_dim = channels // heads
    with without_autocast(mean.device.type):
        weights = weight.to(mean.dtype).view(3, channels, channels)
        q_weight, k_weight, v_weight = weights.unbind(0)
        q_bias, _, v_bias = bias.to(mean.dtype).view(3, channels).unbind(0)
        # (B, heads, C, head_dim): covariance of the tokens with the values.
        with_values = (
            (covariance @ v_weight.mT)
            .view(batch, channels, heads, head_dim)
            .transpose(1, 2)
        )
        per_head = k_weight.view(heads, head_dim, channels) @ with_values
        q_weight = q_weight.view(heads, head_dim, channels)
        matrix = (q_weight.mT @ per_head).transpose(1, 2)
        constant = (q_bias.view(heads, 1, head_dim) @ per_head).view(
            batch, 1, channels
        )
        constant = constant + F.linear(mean, v_weight, v_bias)
        return matrix.reshape(batch, channels, channels), constant

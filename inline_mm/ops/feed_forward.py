"""The feed-forward network of a block, over a few tokens at a time."""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def feed_forward_in_chunks(
    x: Tensor,
    weight1: Tensor,
    bias1: Tensor,
    weight2: Tensor,
    bias2: Tensor,
    rows: int,
) -> Tensor:
    """Linear, GELU, linear, without the hidden layer as a whole.

    The hidden values, most of what a block keeps for its backward pass, are
    made again there, chunk by chunk: a third product more, in a core's cache,
    for less traffic and memory. Not twice differentiable.

    Args:
        x (Tensor): tokens, (N, C).
        weight1 (Tensor): weight of the first layer, (hidden, C).
        bias1 (Tensor): its bias, (hidden,).
        weight2 (Tensor): weight of the second layer, (C, hidden).
        bias2 (Tensor): its bias, (C,).
        rows (int): tokens of a chunk.

    Returns:
        Tensor: (N, C), in the dtype that all of these share.
    """
    return _FeedForward.apply(x, weight1, bias1, weight2, bias2, rows)


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight1, bias1, weight2, bias2, rows):
        ctx.save_for_backward(x, weight1, bias1, weight2)
        ctx.rows = rows
        out = torch.empty_like(x)
        for tokens, result in zip(x.split(rows), out.split(rows), strict=True):
            hidden = F.gelu(F.linear(tokens, weight1, bias1))
            torch.addmm(bias2, hidden, weight2.mT, out=result)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight1, bias1, weight2 = ctx.saved_tensors
        grad = grad.contiguous()
        grad_x = torch.empty_like(x)
        grad_weight1, grad_bias1, grad_weight2 = (
            torch.zeros_like(p) for p in (weight1, bias1, weight2)
        )
        for tokens, above, below in zip(
            *(tensor.split(ctx.rows) for tensor in (x, grad, grad_x)),
            strict=True,
        ):
            hidden = F.linear(tokens, weight1, bias1)
            grad_weight2.addmm_(above.mT, F.gelu(hidden))
            hidden = torch.ops.aten.gelu_backward(above @ weight2, hidden)
            grad_bias1 += hidden.sum(0)
            grad_weight1.addmm_(hidden.mT, tokens)
            torch.mm(hidden, weight1, out=below)
        grads = grad_x, grad_weight1, grad_bias1, grad_weight2, grad.sum(0)
        return *grads, None

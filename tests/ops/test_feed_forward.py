"""The feed-forward network in chunks, against the whole."""

import pytest
import torch
from torch.nn import functional as F

from inline_mm.ops import feed_forward_in_chunks

TOKENS, CHANNELS, HIDDEN = 23, 5, 12


def tensors(seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = (
        (TOKENS, CHANNELS),
        (HIDDEN, CHANNELS),
        (HIDDEN,),
        (CHANNELS, HIDDEN),
        (CHANNELS,),
    )
    return [
        torch.randn(*shape, dtype=torch.float64, generator=generator)
        for shape in shapes
    ]


def whole(x, weight1, bias1, weight2, bias2):
    hidden = F.gelu(F.linear(x, weight1, bias1))
    return F.linear(hidden, weight2, bias2)


@pytest.mark.parametrize('rows', [1, 7, TOKENS, 100])
def test_values_and_gradients(rows):
    results = []
    for function in (
        whole,
        lambda *args: feed_forward_in_chunks(*args, rows),
    ):
        args = [tensor.requires_grad_() for tensor in tensors()]
        out = function(*args)
        # Of strides that aren't those of the output.
        out.backward(tensors(seed=1)[0].T.contiguous().T)
        results.append([out, *(arg.grad for arg in args)])
    for mine, wanted in zip(*results, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize('needed', range(5))
def test_gradients_by_differences(needed):
    args = tensors()
    args[needed].requires_grad_()
    assert torch.autograd.gradcheck(
        lambda *args: feed_forward_in_chunks(*args, 10), args
    )


def test_keeps_no_hidden_layer():
    kept = []
    args = [tensor.requires_grad_() for tensor in tensors()]
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.shape) or tensor, lambda x: x
    ):
        feed_forward_in_chunks(*args, 7)
        assert (TOKENS, HIDDEN) not in kept and (TOKENS, CHANNELS) in kept
        whole(*args)
        assert (TOKENS, HIDDEN) in kept


def test_a_second_derivative_is_refused():
    args = [tensor.requires_grad_() for tensor in tensors()]
    out = feed_forward_in_chunks(*args, 7)
    (grad,) = torch.autograd.grad(
        out.square().sum(), args[0], create_graph=True
    )
    with pytest.raises(RuntimeError, match='once_differentiable'):
        grad.sum().backward()

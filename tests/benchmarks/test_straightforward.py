"""The formulation that ours is timed by computes the same."""

import copy

import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS

from benchmarks.straightforward import (
    StraightforwardAttention,
    StraightforwardBlock,
    make_straightforward,
)
from inline_mm.layers import Block, InLineAttention


def values_and_gradients(module, x, *arguments):
    """Outputs, and gradients of a weighted sum of them."""
    x = x.clone().requires_grad_()
    outputs = module(x, *arguments)
    outputs = (outputs,) if torch.is_tensor(outputs) else outputs
    generator = torch.Generator().manual_seed(1)
    weights = [
        torch.randn(out.shape, generator=generator, dtype=out.dtype)
        for out in outputs
    ]
    torch.autograd.backward(outputs, weights)
    return outputs, [x.grad, *(p.grad for p in module.parameters())]


def assert_same(left, right):
    for ours, theirs in zip(left[0], right[0], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    for ours, theirs in zip(left[1], right[1], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('hw_shape', [(3, 5), (7, 9)])
@pytest.mark.parametrize(
    'extra', [{}, dict(num_prefix_tokens=1), dict(lepe=True)], ids=str
)
@pytest.mark.parametrize('kernel', ['identity', 'leaky_relu'])
def test_layer(hw_shape, extra, kernel):
    torch.manual_seed(0)
    layer = InLineAttention(16, 4, kernel=kernel, **extra).double()
    other = StraightforwardAttention(copy.deepcopy(layer))
    tokens = hw_shape[0] * hw_shape[1] + extra.get('num_prefix_tokens', 0)
    x = torch.randn(2, tokens, 16, dtype=torch.float64) + 3
    # Ours in another order of modules: parameters by name.
    names = [name for name, _ in layer.named_parameters()]
    assert names == [name for name, _ in other.named_parameters()]
    assert_same(
        values_and_gradients(layer, x, hw_shape),
        values_and_gradients(other, x, hw_shape),
    )


@pytest.mark.parametrize('name', ARCHS)
def test_backbone(name):
    torch.manual_seed(0)
    model = MODELS.build(dict(type=name, arch=ARCHS[name], drop_path_rate=0.0))
    model.double()
    other = copy.deepcopy(model)
    make_straightforward(other)
    assert not any(isinstance(m, Block) for m in other.modules())
    blocks = [m for m in model.modules() if isinstance(m, Block)]
    replaced = [m for m in other.modules() if type(m) is StraightforwardBlock]
    assert len(replaced) == len(blocks)
    x = torch.randn(2, 3, 64, 96, dtype=torch.float64)
    assert_same(values_and_gradients(model, x), values_and_gradients(other, x))


def test_refuses_what_it_does_not_compute():
    for settings in (dict(window_size=7), dict(normalization='divide')):
        with pytest.raises(ValueError, match='global and subtracts'):
            StraightforwardAttention(InLineAttention(16, 4, **settings))
    with pytest.raises(ValueError, match='no InLine block'):
        make_straightforward(torch.nn.Linear(2, 2))

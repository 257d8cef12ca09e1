"""The layer around the other linear attentions."""

import pytest
import torch
from torch.nn import functional as F

from inline_mm.layers import LINEAR_ATTENTIONS, LinearAttention, WindowLayout
from inline_mm.ops import naive_linear

# Enough channels a head that relu leaves something of each query.
CHANNELS, HEADS = 60, 3
HW_SHAPE = (5, 7)


def build(name, **options):
    torch.manual_seed(0)
    layer = LinearAttention(CHANNELS, HEADS, name, **options).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer


def tokens(prefix=0, batch=2, hw_shape=HW_SHAPE):
    generator = torch.Generator().manual_seed(1)
    count = prefix + hw_shape[0] * hw_shape[1]
    return torch.randn(
        batch, count, CHANNELS, generator=generator, dtype=torch.float64
    )


def spelled_out(layer, name, x, prefix):
    """Head by head, weights and all; the convolution tap by tap."""
    q, k, v = F.linear(x, layer.qkv.weight, layer.qkv.bias).chunk(3, -1)
    attend = getattr(naive_linear, f'naive_{name}_attention')
    split = [torch.stack(part.chunk(HEADS, -1), 1) for part in (q, k, v)]
    if name == 'hydra':  # the norm is that of all channels
        out = attend(*split)
    else:
        out = torch.cat(
            [attend(*(part[:, [i]] for part in split)) for i in range(HEADS)],
            dim=1,
        )
    out = torch.cat(out.unbind(1), -1)
    side = {'angular': 3, 'focused': 5}.get(name)
    if side:
        out[:, prefix:] += convolve(v[:, prefix:], layer.depthwise, side)
    return F.linear(out, layer.proj.weight, layer.proj.bias)


def convolve(values, convolution, side):
    (height, width), half = HW_SHAPE, side // 2
    grid = values.reshape(-1, height, width, CHANNELS)
    grid = F.pad(grid, (0, 0, half, half, half, half))
    out = convolution.bias.expand(len(grid), height, width, -1)
    for row in range(side):
        for column in range(side):
            tap = convolution.weight[:, 0, row, column]
            out = (
                out
                + tap * grid[:, row : row + height, column : column + width]
            )
    return out.flatten(1, 2)


@pytest.mark.parametrize('prefix', [0, 1])
@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_layer_equals_its_definition(name, prefix):
    layer = build(name, num_prefix_tokens=prefix)
    x = tokens(prefix).requires_grad_()
    results = []
    for out in (layer(x, HW_SHAPE), spelled_out(layer, name, x, prefix)):
        loss = (out * torch.cos(torch.arange(CHANNELS))).sum()
        inputs = [x, *layer.parameters()]
        results.append([out, *torch.autograd.grad(loss, inputs)])
    for left, right in zip(*results, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= 1e-10 * size


@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_parameters_are_the_projections_and_what_the_design_needs(name):
    own = {'qkv.weight', 'qkv.bias', 'proj.weight', 'proj.bias'}
    if name in ('angular', 'focused'):
        own |= {'depthwise.weight', 'depthwise.bias'}
    layer = build(name)
    assert set(layer.state_dict()) == own
    layer(tokens(), HW_SHAPE).square().sum().backward()
    for key, parameter in layer.named_parameters():
        assert parameter.grad.isfinite().all() and parameter.grad.any(), key


@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_windows_attend_alone(name):
    layer = build(name, window_size=3, shifted=True)
    x = tokens()
    layout = WindowLayout.fit(HW_SHAPE, 3, shifted=True, shrink=True)
    whole = build(name)
    windows = torch.stack(
        [
            whole(window[None], layout.window)[0]
            for window in layout.split(x).unbind(0)
        ]
    )
    torch.testing.assert_close(layer(x, HW_SHAPE), layout.merge(windows))


@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_block_input_is_taken_and_not_looked_at(name):
    layer, x = build(name), tokens()
    assert torch.equal(layer(x, HW_SHAPE, x + 1), layer(x, HW_SHAPE))


@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_samples_are_independent(name):
    layer, x = build(name), tokens()
    alone = torch.cat([layer(sample[None], HW_SHAPE) for sample in x])
    torch.testing.assert_close(layer(x, HW_SHAPE), alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_mixed_precision_is_close_to_float64(name, dtype):
    layer = build(name, num_prefix_tokens=1)
    x = tokens(1, hw_shape=(32, 40))
    want = layer(x, (32, 40))
    layer.float()
    with torch.autocast('cpu', dtype):
        got = layer(x.to(dtype), (32, 40))
    assert got.dtype == dtype
    error = (got.double() - want).abs().max() / want.abs().max()
    assert error < (2e-2 if dtype is torch.float16 else 5e-2)
    got.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize('name', LINEAR_ATTENTIONS)
def test_one_graph_with_equal_gradients(name):
    torch._dynamo.reset()
    layer = build(name, num_prefix_tokens=1)
    compiled = torch.compile(layer, backend='aot_eager', fullgraph=True)
    results = []
    for function in (compiled, layer):
        x = tokens(1).requires_grad_()
        out = function(x, HW_SHAPE)
        inputs = [x, *layer.parameters()]
        results.append([out, *torch.autograd.grad(out.sum(), inputs)])
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right)


def test_drop_rate_drops():
    layer, x = build('elu', drop_rate=0.5), tokens()
    out = layer(x, HW_SHAPE)
    assert 0.3 < (out == 0).double().mean() < 0.7
    assert not (layer.eval()(x, HW_SHAPE) == 0).any()


def test_mistakes_are_refused():
    with pytest.raises(ValueError, match=r"'hydra'.*'inline'.*got 'linear'"):
        LinearAttention(24, 3, 'linear')
    with pytest.raises(ValueError, match='num_heads must divide'):
        LinearAttention(24, 5, 'elu')

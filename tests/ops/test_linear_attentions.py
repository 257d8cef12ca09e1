"""Other linear attentions against their definitions, and what they cost."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inline_mm import ops
from inline_mm.ops import naive_linear

NAMES = ('elu', 'efficient', 'hydra', 'angular', 'focused', 'cosine')
# The weights of a query sum to one in all but Hydra.
NORMALISED = tuple(name for name in NAMES if name != 'hydra')


def fast(name):
    return getattr(ops, f'{name}_attention')


def slow(name):
    return getattr(naive_linear, f'naive_{name}_attention')


def draw_qkv(batch, tokens, offset=0.0, heads=2, head_dim=32, scale=1.0):
    generator = torch.Generator().manual_seed(10 * tokens + batch)
    shape = (3, batch, heads, tokens, head_dim)
    tensors = torch.randn(shape, generator=generator, dtype=torch.float64)
    return [(scale * x + offset).requires_grad_() for x in tensors]


def outputs_and_gradients(function, tensors):
    out = function(*tensors)
    cotangent = torch.cos(torch.arange(out.numel(), dtype=out.dtype))
    loss = (out * cotangent.view_as(out)).sum()
    return [out, *torch.autograd.grad(loss, tensors)]


@pytest.mark.parametrize(
    ('name', 'scale', 'offset'),
    [
        (name, scale, offset)
        for name in NAMES
        for scale, offset in ((1, 0), (1, 50), (1e-3, 0), (1, -9))
        # There relu leaves nothing to divide.
        if offset >= 0 or name not in ('focused', 'cosine')
    ],
)
@pytest.mark.parametrize('batch', [1, 3])
@pytest.mark.parametrize('tokens', [1, 2, 17, 196])
def test_closed_form_equals_definition(name, tokens, batch, scale, offset):
    tensors = draw_qkv(batch, tokens, offset, scale=scale)
    got = outputs_and_gradients(fast(name), tensors)
    want = outputs_and_gradients(slow(name), tensors)
    for part, left, right in zip('oqkv', got, want, strict=True):
        assert left.shape == right.shape
        # The definitions lose some digits of what all tokens share.
        size = right.abs().max().clamp(min=1)
        tolerance = 1e-10 if part == 'o' else 1e-9
        assert (left - right).abs().max() <= tolerance * size, part


@pytest.mark.parametrize('name', NORMALISED)
def test_weights_sum_to_one(name):
    q, k, v = draw_qkv(2, 31)
    out = fast(name)(q, k, torch.ones_like(v))
    torch.testing.assert_close(
        out, torch.ones_like(v), rtol=0, atol=1e-12, check_stride=False
    )


def test_hydra_has_no_heads():
    """Channels may be arranged in heads in any way."""
    few = draw_qkv(2, 13, heads=2, head_dim=12)
    many = [t.reshape(2, 2, 13, 3, 4).permute(0, 1, 3, 2, 4) for t in few]
    out = ops.hydra_attention(*few).reshape(2, 2, 13, 3, 4)
    out = out.permute(0, 1, 3, 2, 4).reshape(2, 6, 13, 4)
    many = [t.reshape(2, 6, 13, 4) for t in many]
    torch.testing.assert_close(out, ops.hydra_attention(*many))


def test_angular_weights_begin_the_angular_kernel():
    """1 - angle / pi, up to terms of third order in the cosine."""
    q, k, _ = draw_qkv(1, 20, head_dim=20)
    unit = [x / x.norm(dim=-1, keepdim=True) for x in (q, k)]
    cosine = unit[0] @ unit[1].transpose(-2, -1)
    kernel = 1 - torch.arccos(cosine) / math.pi
    # On one-hot values the output is the weights themselves; divided by the
    # kernel, and by what they sum to, they are one up to the third order.
    weights = ops.angular_attention(q, k, _one_hot(q))
    linear = weights * (0.5 + cosine / math.pi).sum(-1, keepdim=True)
    error = (kernel - linear).abs()
    bound = (math.pi / 2 - 1) / math.pi * cosine.abs() ** 3
    assert (error <= bound + 1e-15).all() and error.max() > 1e-4


def _one_hot(like):
    batch, heads, tokens, _ = like.shape
    eye = torch.eye(tokens, dtype=like.dtype)
    return eye.expand(batch, heads, tokens, tokens)


def test_focused_features_keep_their_norm_and_sharpen():
    x = draw_qkv(1, 50)[0]
    features = ops.linear_attentions._focus(x)
    positive = x.relu()
    torch.testing.assert_close(features.norm(dim=-1), positive.norm(dim=-1))
    ratio = features.amax(-1) / positive.amax(-1)
    assert (ratio > 1).all()
    # The same at magnitudes whose sixth powers leave float32.
    for scale in (1e-10, 1e10):
        scaled = ops.linear_attentions._focus((scale * x).float())
        want = (scale * features).float()
        torch.testing.assert_close(scaled / scale, want / scale)


def test_cosine_weights_fall_with_the_distance():
    """Equal queries and keys: all that differs is the position."""
    tokens = 30
    ones = torch.ones(1, 1, tokens, tokens, dtype=torch.float64)
    weights = ops.cosine_attention(ones, ones, _one_hot(ones))[0, 0]
    for index in range(tokens):
        assert (weights[index, index:].diff() < 0).all()
        assert (weights[index, : index + 1].diff() > 0).all()


@pytest.mark.parametrize('name', NAMES)
def test_queries_and_keys_without_direction_give_finite_results(name):
    """Zeros, and values that relu makes zero."""
    for value in (0.0, -3.0):
        q, k, v = draw_qkv(1, 16)
        for flat in ((q, k), (q,), (k,)):
            tensors = [
                torch.full_like(x, value).requires_grad_()
                if any(x is y for y in flat)
                else x
                for x in (q, k, v)
            ]
            for result in outputs_and_gradients(fast(name), tensors):
                assert torch.isfinite(result).all()


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize('scale', [0.01, 1.0, 100.0])
@pytest.mark.parametrize('name', NAMES)
def test_half_precision_keeps_its_digits(name, scale, dtype):
    """Large shared means and sums over many tokens don't overflow."""
    tokens = 20000
    if name == 'hydra' and scale == 100 and dtype is torch.float16:
        tokens = 2000  # its sum isn't a mean: the result itself overflows
    q, k, v = (x.detach() for x in draw_qkv(1, tokens))
    tensors = [(scale * x).to(dtype) for x in (q, k + 2, v + 2)]
    want = fast(name)(*(x.double() for x in tensors))
    tensors = [x.requires_grad_() for x in tensors]
    with torch.autocast('cpu', torch.bfloat16):
        got = fast(name)(*tensors)
    assert got.dtype == dtype
    error = (got.double() - want).abs().max() / want.abs().max()
    assert error < 2 * torch.finfo(dtype).eps
    for gradient in torch.autograd.grad(got.float().mean(), tensors):
        assert torch.isfinite(gradient).all()


class Sizes(TorchDispatchMode):
    """Notes the most elements that a tensor has, and those of all."""

    def __init__(self):
        super().__init__()
        self.largest = self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.largest = max(self.largest, out.numel())
            self.total += out.numel()
        return out


def sizes_of(function, tokens):
    tensors = draw_qkv(1, tokens, head_dim=8)
    with Sizes() as sizes:
        function(*tensors).sum().backward()
    return sizes


@pytest.mark.parametrize('name', NAMES)
def test_no_tensor_has_a_weight_for_each_pair(name):
    tokens, channels = 1024, 16
    small = sizes_of(fast(name), tokens)
    large = sizes_of(fast(name), 2 * tokens)
    assert small.largest <= 2 * tokens * channels
    assert large.largest <= 2 * small.largest
    assert large.total <= 2 * small.total
    # The measure sees it where there is one.
    assert sizes_of(slow(name), tokens).largest >= tokens**2

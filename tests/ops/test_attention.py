"""Closed forms against the definitions, values and gradients, float64."""

import pytest
import torch

from inline_mm import ops
from inline_mm.ops import naive

# (batch, heads, tokens, channels of a head)
SHAPES = [(1, 1, 1, 4), (2, 3, 7, 8), (1, 2, 97, 32), (3, 2, 49, 24)]
PAIRS = {
    'subtract': (ops.inline_attention, naive.naive_inline_attention),
    'divide': (ops.divide_attention, naive.naive_divide_attention),
    'softmax': (ops.softmax_attention, naive.naive_softmax_attention),
}


def draw_qkv(shape, offset=0.0, positive=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tensors = torch.randn(3, *shape, generator=generator, dtype=torch.float64)
    if positive:
        tensors = tensors.abs()
    return [(tensor + offset).detach().requires_grad_() for tensor in tensors]


def outputs_and_gradients(function, tensors):
    out = function(*tensors)
    cotangent = torch.cos(torch.arange(out.numel(), dtype=out.dtype))
    loss = (out * cotangent.view_as(out)).sum()
    return [out, *torch.autograd.grad(loss, tensors)]


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('offset', [0.0, 50.0])
@pytest.mark.parametrize('name', PAIRS)
def test_closed_form_equals_definition(name, offset, shape):
    fast, slow = PAIRS[name]
    # Division needs weights that don't change sign to be well conditioned.
    tensors = draw_qkv(shape, offset, positive=name == 'divide')
    got = outputs_and_gradients(fast, tensors)
    want = outputs_and_gradients(slow, tensors)
    # A shared mean of 50 makes the scores of the definitions about 1e4
    # times larger than their spread, which costs them that many digits.
    tolerance = 1e-10 if offset == 0 else 1e-7
    scale = max(1.0, offset)
    for left, right in zip(got, want, strict=True):
        size = right.abs().max().clamp(min=scale)
        assert (left - right).abs().max() <= tolerance * size


VANISHING = {
    'no query': torch.zeros(4),
    'orthogonal to the mean key': torch.tensor([1.0, -1.0, 0.0, 0.0]),
    'nearly so': torch.tensor([1.0, -1.0, 1e-9, 0.0]),
    'nearly so, below zero': torch.tensor([1.0, -1.0, -1e-9, 0.0]),
}


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize('name', VANISHING)
def test_divide_guards_a_vanishing_denominator(name, dtype):
    """Finite, forward and backward, and what the definition says."""
    q, k, v = draw_qkv((1, 1, 16, 4))
    with torch.no_grad():
        q[:] = VANISHING[name]
        # Mirrored, so that the mean key is (1, 1, 1, 1) exactly.
        k[..., :8, :] = torch.arange(32).reshape(8, 4) * 7 % 11 / 8
        k[..., 8:, :] = 2 - k[..., :8, :]
    tensors = [t.detach().to(dtype).requires_grad_() for t in (q, k, v)]
    results = outputs_and_gradients(ops.divide_attention, tensors)
    assert all(tensor.isfinite().all() for tensor in results)
    if dtype is torch.float32:  # has no sign for what rounding leaves over
        return
    wanted = outputs_and_gradients(naive.naive_divide_attention, tensors)
    for left, right in zip(results, wanted, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= 1e-10 * size


def near_a_zero(attend, offset, dtype):
    """Weights of the query (1 + offset, -1), their gradient; mean key 1, 1.

    The values are unit vectors, so that the outputs are the weights.
    """
    k = torch.tensor([[1.5, 0.5], [0.5, 1.5], [1, 1], [1, 1]], dtype=dtype)
    q = torch.tensor([[1, -1]], dtype=torch.float64)
    q = (q + torch.tensor([[offset, 0]], dtype=q.dtype)).to(dtype)
    q = q[None, None].requires_grad_()
    v = torch.eye(4, dtype=dtype)
    weights = attend(q, k[None, None], v[None, None])
    (gradient,) = torch.autograd.grad(weights[..., 0].sum(), q)
    return weights.detach().double(), gradient


def test_division_fails_in_fp16_near_a_zero_of_its_denominator():
    """The numbers of the docstring: why fp16 isn't for this ablation."""
    for offset, divided, infinite, steep in (
        (0.0014, 0.4, False, True),
        (0.0020, 0.02, False, True),
        (0.0040, 0.02, False, False),
        (0.0004, None, True, True),
    ):
        wanted, finite = near_a_zero(
            ops.divide_attention, offset, torch.float64
        )
        assert wanted.isfinite().all() and finite.isfinite().all()
        weights, gradient = near_a_zero(
            ops.divide_attention, offset, torch.float16
        )
        assert weights.isinf().any() == infinite
        assert gradient.isinf().any() == steep
        if not infinite:
            error = (weights - wanted).abs().max() / wanted.abs().max()
            assert error == pytest.approx(divided, abs=0.05)
        # InLine, of the same queries and keys.
        wanted, _ = near_a_zero(ops.inline_attention, offset, torch.float64)
        weights, gradient = near_a_zero(
            ops.inline_attention, offset, torch.float16
        )
        assert (weights - wanted).abs().max() < 1e-3 * wanted.abs().max()
        assert gradient.isfinite().all()


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
@pytest.mark.parametrize('scale', [0.01, 1.0, 100.0])
def test_half_precision_keeps_its_digits(dtype, scale):
    """Large shared means and sums over many tokens don't overflow."""
    q, k, v = draw_qkv((1, 2, 20000, 32))
    k, v = k + 2, v + 2
    want = ops.inline_attention(scale * q, scale * k, scale * v)
    got = ops.inline_attention(
        *(tensor.to(dtype) for tensor in (scale * q, scale * k, scale * v))
    )
    assert got.dtype == dtype
    finite = want.abs() < torch.finfo(dtype).max
    error = (got.double() - want)[finite].abs().max() / want.abs().max()
    assert error < (2e-2 if dtype is torch.float16 else 5e-2)


def folded_attention(x, weight, bias, heads):
    """`fold_inline_attention` applied to tokens."""
    scale = (x.shape[2] // heads) ** -0.5
    mean, covariance = ops.token_moments(x, scale)
    matrix, constant = ops.fold_inline_attention(
        mean, covariance, weight, bias, heads
    )
    return x @ matrix + constant


def attention_by_heads(attend, x, weight, bias, heads):
    """Projection, `attend` for each head, heads side by side."""
    qkv = torch.nn.functional.linear(x, weight, bias)
    q, k, v = qkv.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    return attend(q, k, v).transpose(1, 2).flatten(2)


def draw_layer(batch, tokens, channels, offset=0.0):
    """Tokens and a projection (x, weight, bias), float64, with gradients."""
    generator = torch.Generator().manual_seed(2)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = draw(batch, tokens, channels) + offset * draw(channels)
    weight = draw(3 * channels, channels) * channels**-0.5
    return [t.requires_grad_() for t in (x, weight, draw(3 * channels))]


@pytest.mark.parametrize(
    ('batch', 'tokens', 'channels', 'heads'),
    [(1, 1, 8, 2), (2, 3, 8, 1), (8, 97, 12, 3), (3, 1000, 16, 4)],
)
@pytest.mark.parametrize('offset', [0.0, 50.0])
def test_folded_form_equals_definition(batch, tokens, channels, heads, offset):
    tensors = draw_layer(batch, tokens, channels, offset)
    got = outputs_and_gradients(
        lambda *t: folded_attention(*t, heads), tensors
    )
    want = outputs_and_gradients(
        lambda *t: attention_by_heads(naive.naive_inline_attention, *t, heads),
        tensors,
    )
    for name, left, right in zip(
        ('output', 'x', 'weight', 'bias'), got, want, strict=True
    ):
        # The definition loses the digits of a shared mean, squared.
        size = right.abs().max().clamp(min=1) * max(1, offset**2)
        tolerance = 1e-10 if name == 'output' else 1e-9
        assert (left - right).abs().max() <= tolerance * size, name


@pytest.mark.parametrize('offset', [0.0, 50.0])
def test_folded_form_equals_heads_on_many_tokens(offset):
    """64,000 tokens, as on the largest maps of a detector."""
    tensors = draw_layer(1, 64000, 8, offset)
    got = outputs_and_gradients(lambda *t: folded_attention(*t, 2), tensors)
    want = outputs_and_gradients(
        lambda *t: attention_by_heads(ops.inline_attention, *t, 2), tensors
    )
    for left, right in zip(got, want, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= 1e-10 * size


def test_moments_of_tokens_pass_gradcheck_twice():
    x = draw_layer(2, 5, 3)[0]

    def moments(x):
        return ops.token_moments(x, 0.7)

    assert torch.autograd.gradcheck(moments, x)
    assert torch.autograd.gradgradcheck(moments, x)


@pytest.mark.parametrize(
    'shape', [(1, 1, 1, 3), (2, 5, 3, 4), (3, 7, 11, 8)], ids=str
)
def test_local_residual_equals_nine_shifts(shape):
    batch, height, width, channels = shape
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(
        batch,
        height * width,
        channels,
        generator=generator,
        dtype=torch.float64,
        requires_grad=True,
    )
    kernels = torch.randn(
        batch,
        channels,
        9,
        generator=generator,
        dtype=torch.float64,
        requires_grad=True,
    )
    results = [
        outputs_and_gradients(
            lambda v, w, function=function: function(v, w, (height, width)),
            [values, kernels],
        )
        for function in (ops.local_residual, naive.naive_local_residual)
    ]
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)

"""The ablation switches against their definitions, in float64."""

import pytest
import torch
from torch.nn import functional as F

from inline_mm.layers import InLineAttention
from inline_mm.layers.attention import NORMALIZATIONS
from inline_mm.layers.kernels import KERNELS
from inline_mm.ops import naive

NAIVE_NORMALIZATIONS = {
    'subtract': naive.naive_inline_attention,
    'divide': naive.naive_divide_attention,
    'softmax': naive.naive_softmax_attention,
}
# Side of the windows, and maps: not divisible, smaller than a window, one
# window, several of them.
WINDOWS = [
    (7, (9, 16)),
    (7, (3, 10)),
    (7, (7, 7)),
    (7, (14, 21)),
    (14, (15, 20)),
    (14, (5, 6)),
    (28, (30, 9)),
    (28, (3, 56)),
    (56, (60, 5)),
    (56, (4, 112)),
    (56, (13, 11)),
]
# What goes with the global attention of a layer.
PARTS = {
    'bare': dict(local_residual=False),
    'residual': {},
    'lepe': dict(lepe=True),
    'lepe alone': dict(lepe=True, local_residual=False),
    'class token': dict(num_prefix_tokens=1),
    'class token alone': dict(num_prefix_tokens=1, local_residual=False),
}


def test_every_switch_has_a_definition():
    assert set(KERNELS) == set(naive.NAIVE_KERNELS)
    assert set(NORMALIZATIONS) == set(NAIVE_NORMALIZATIONS)


def naive_layer(layer, kernel, normalization, x, hw_shape, pooled_from=None):
    """`InLineAttention` by weights, head by head and window by window."""
    pooled_from = x if pooled_from is None else pooled_from
    if layer.window_size is None:
        return naive_part(
            layer, kernel, normalization, x, hw_shape, pooled_from
        )
    padded, window, windows = naive.naive_windows(
        hw_shape, layer.window_size, layer.shifted
    )
    lines = (0, 0, 0, padded[1] - hw_shape[1], 0, padded[0] - hw_shape[0])
    x, pooled_from = (
        F.pad(tokens.unflatten(1, hw_shape), lines)
        for tokens in (x, pooled_from)
    )
    out = torch.zeros_like(x)
    for places in windows:
        rows, columns = map(torch.tensor, zip(*places, strict=True))
        part = naive_part(
            layer,
            kernel,
            normalization,
            x[:, rows, columns],
            window,
            pooled_from[:, rows, columns],
        )
        out = out.index_put(
            (torch.arange(len(x))[:, None], rows, columns), part
        )
    return out[:, : hw_shape[0], : hw_shape[1]].flatten(1, 2)


def naive_part(layer, kernel, normalization, x, hw_shape, pooled_from):
    """The same for a whole map, or one window of it."""
    on_queries = naive.NAIVE_KERNELS[kernel]
    on_keys = on_queries
    if kernel == 'normalized_relu':
        on_keys = naive.NAIVE_KERNELS['identity']
    parameters = list(layer.kernel.parameters())
    q, k, v = layer.qkv(x).chunk(3, dim=-1)
    out = torch.cat(
        [
            NAIVE_NORMALIZATIONS[normalization](
                on_queries(head_q, *parameters),
                on_keys(head_k, *parameters),
                head_v,
            )
            for head_q, head_k, head_v in zip(
                *(part.chunk(layer.num_heads, dim=-1) for part in (q, k, v)),
                strict=True,
            )
        ],
        dim=-1,
    )
    prefix, channels = layer.num_prefix_tokens, x.shape[-1]
    terms = []
    if layer.kernel_predictor is not None:
        kernels = layer.kernel_predictor(pooled_from.mean(1).unsqueeze(-1))
        terms.append(kernels.reshape(-1, channels, 9))
    if layer.lepe is not None:
        terms.append(layer.lepe.weight.reshape(1, channels, 9))
        out[:, prefix:] = out[:, prefix:] + layer.lepe.bias
    for kernels in terms:
        local = naive.naive_local_residual(
            v[:, prefix:], kernels.expand(len(x), -1, -1), hw_shape
        )
        out = torch.cat([out[:, :prefix], out[:, prefix:] + local], dim=1)
    return layer.proj(out)


def outputs_and_gradients(layer, function, x, *arguments):
    inputs = [x, *layer.parameters()]
    out = function(x, *arguments)
    cotangent = torch.cos(torch.arange(out.numel(), dtype=out.dtype))
    loss = (out * cotangent.view_as(out)).sum()
    return [out, *torch.autograd.grad(loss, inputs)]


def assert_equals_definition(layer, kernel, normalization, x, *arguments):
    got = outputs_and_gradients(layer, layer, x, *arguments)
    want = outputs_and_gradients(
        layer,
        lambda *args: naive_layer(layer, kernel, normalization, *args),
        x,
        *arguments,
    )
    for left, right in zip(got, want, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= 1e-9 * size


def draw(hw_shape, prefix=0, batch=2, channels=8):
    torch.manual_seed(0)
    shape = (batch, prefix + hw_shape[0] * hw_shape[1], channels)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize('pooled', [False, True])
@pytest.mark.parametrize('parts', PARTS)
@pytest.mark.parametrize('normalization', NORMALIZATIONS)
@pytest.mark.parametrize('kernel', KERNELS)
def test_global_layer(kernel, normalization, parts, pooled):
    options = PARTS[parts]
    hw_shape = (5, 7)
    x = draw(hw_shape, options.get('num_prefix_tokens', 0))
    layer = InLineAttention(
        8, 2, kernel=kernel, normalization=normalization, **options
    ).double()
    pooled_from = [torch.randn_like(x)] if pooled else []
    assert_equals_definition(
        layer, kernel, normalization, x, hw_shape, *pooled_from
    )


# With True the identity's queries and keys are folded away.
IN_WINDOWS = [
    ('identity', 'subtract', True),
    *((kernel, 'subtract', False) for kernel in KERNELS),
    ('identity', 'divide', False),
    ('exp', 'divide', False),
    ('identity', 'softmax', False),
    ('normalized_relu', 'softmax', False),
]


@pytest.mark.parametrize('shifted', [False, True])
@pytest.mark.parametrize(('window_size', 'hw_shape'), WINDOWS, ids=str)
def test_windows(window_size, hw_shape, shifted):
    x = draw(hw_shape, batch=2 if window_size < 28 else 1)
    for index, (kernel, normalization, fold) in enumerate(IN_WINDOWS):
        layer = InLineAttention(
            8,
            2,
            kernel=kernel,
            normalization=normalization,
            local_residual=index % 3 < 2,
            window_size=window_size,
            shifted=shifted,
            lepe=index % 2 == 1,
        ).double()
        layer.fold = fold
        assert_equals_definition(layer, kernel, normalization, x, hw_shape)


@pytest.mark.parametrize(
    'dtype', [torch.float16, torch.bfloat16, torch.float32], ids=str
)
def test_normalized_relu_without_positive_channels(dtype):
    """Zero, with finite gradients; small ones have the norm of one."""
    rows = [[-1, -2, 0, 0], [1e-3, 2e-3, 0, -1], [1e-7, 0, 0, 0], [3, 4, 0, 0]]
    x = torch.tensor(rows, dtype=dtype, requires_grad=True)
    out = KERNELS['normalized_relu'](4)(x)
    assert out.dtype == dtype
    out.sum().backward()
    assert x.grad.isfinite().all()
    assert (x.grad[0] == 0).all()
    norms = out.detach().double().norm(dim=-1)
    wanted = torch.tensor([0.0, 1, 1, 1], dtype=torch.float64)
    torch.testing.assert_close(norms, wanted, rtol=0, atol=4e-3)


def test_state_dict_keys_of_the_kernels():
    """Only relu(A x + b) has parameters."""
    plain = InLineAttention(8, 2).state_dict().keys()
    for kernel in KERNELS:
        keys = InLineAttention(8, 2, kernel=kernel).state_dict().keys()
        wanted = {'kernel.0.weight', 'kernel.0.bias'}
        assert keys - plain == (wanted if kernel == 'affine_relu' else set())

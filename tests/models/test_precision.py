"""Mixed precision: close to float32, finite, statistics in float32."""

import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS
from torch import nn

from inline_mm.layers import InLineAttention
from inline_mm.layers.attention import KERNELS
from inline_mm.ops import inline_attention
from inline_mm.ops.naive import naive_inline_attention

TOLERANCE = {torch.float16: 2e-2, torch.bfloat16: 5e-2}
DTYPES = pytest.mark.parametrize('dtype', TOLERANCE, ids=str)


def autocast(dtype):
    return torch.autocast('cpu', dtype)


def assert_levels_close(model, x, dtype):
    """Each output under autocast against float32, by its largest value."""
    with torch.no_grad():
        wanted = model(x)
        with autocast(dtype):
            outputs = model(x)
    for level, (out, want) in enumerate(zip(outputs, wanted, strict=True)):
        assert out.dtype in (dtype, torch.float32)
        error = (out.float() - want).abs().max() / want.abs().max()
        assert error < TOLERANCE[dtype], (level, error)


@DTYPES
@pytest.mark.parametrize('scale', [0.01, 1.0, 100.0])
@pytest.mark.parametrize('name', ARCHS)
def test_close_to_float32(name, scale, dtype):
    torch.manual_seed(0)
    model = MODELS.build(dict(type=name, arch=ARCHS[name]))
    model.init_weights()
    assert_levels_close(
        model.eval(), scale * torch.randn(1, 3, 224, 224), dtype
    )


@pytest.mark.heavy
@DTYPES
@pytest.mark.parametrize('scale', [0.01, 1.0, 100.0])
@pytest.mark.parametrize('name', ARCHS)
def test_close_to_float32_at_the_size_of_detectors(name, scale, dtype):
    torch.manual_seed(0)
    model = MODELS.build(dict(type=name, arch='tiny'))
    model.init_weights()
    assert_levels_close(
        model.eval(), scale * torch.randn(1, 3, 800, 1344), dtype
    )


@DTYPES
@pytest.mark.parametrize('name', ARCHS)
def test_output_dtype_is_what_autocast_makes_of_the_layers(name, dtype):
    """A norm of tokens out of a product; float32 once a table was added."""
    model = MODELS.build(dict(type=name, arch=ARCHS[name])).eval()
    with torch.no_grad(), autocast(dtype):
        outputs = model(torch.randn(1, 3, 64, 64))
        tokens = nn.Linear(4, 4)(torch.randn(1, 4))
        if name in ('InLinePVT', 'InLineDeiT'):
            tokens = tokens + torch.zeros(4)
        wanted = nn.LayerNorm(4)(tokens).dtype
    assert {out.dtype for out in outputs} == {wanted}


@DTYPES
@pytest.mark.parametrize('kernel', KERNELS)
def test_fifty_iterations_stay_finite(kernel, dtype):
    torch.manual_seed(0)
    model = MODELS.build(
        dict(
            type='InLinePVT',
            arch=ARCHS['InLinePVT'],
            out_indices=(0,),
            kernel=kernel,
        )
    )
    model.init_weights()
    head = nn.Linear(model.num_features[0], 4)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    scaler = torch.amp.GradScaler('cpu', enabled=dtype == torch.float16)
    losses = []
    images = torch.randn(4, 3, 32, 32)
    classes = torch.arange(4)
    for _ in range(50):
        with autocast(dtype):
            (out,) = model(images)
            scores = head(out.mean((2, 3)))
            loss = nn.functional.cross_entropy(scores.float(), classes)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # left out where a scaled gradient overflowed
        scaler.update()
        losses.append(loss.item())
    assert torch.tensor(losses).isfinite().all()
    assert all(p.isfinite().all() for p in parameters)
    assert losses[-1] < 0.7 * losses[0]


def shared_mean_tokens(num_tokens, channels, mean=5.0):
    """Tokens of one mean for all, and how far they spread around it."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(1, num_tokens, channels, generator=generator)
    return mean + noise


def relative_error(out, wanted):
    return ((out.double() - wanted).abs().max() / wanted.abs().max()).item()


@DTYPES
def test_statistics_are_centred_and_in_float32(dtype):
    """Products of tokens with a mean of 5, against float64 on the same."""
    x = shared_mean_tokens(4096, 16).to(dtype)
    q, k, v = (part.unsqueeze(1) for part in (x - 5, x, x.flip(1)))
    wanted = naive_inline_attention(*(part.double() for part in (q, k, v)))
    # The part that varies, which the common mean of the values would hide.
    wanted_variation = wanted - wanted.mean(2, keepdim=True)
    with autocast(dtype):
        out = inline_attention(q, k, v)
        scale = 16**-0.5
        uncentred = (k.mT @ v * (scale / 4096)) - scale * (
            k.mean(2, keepdim=True).mT @ v.mean(2, keepdim=True)
        )
        careless = q @ uncentred
    assert out.dtype == dtype
    step = torch.finfo(dtype).eps
    assert relative_error(out, wanted) < 4 * step
    assert not relative_error(careless, wanted_variation) < 0.1


@DTYPES
@pytest.mark.parametrize('kernel', ['identity', 'exp'])
def test_attention_of_tokens_with_a_shared_mean(kernel, dtype):
    """Both forms of the layer, the one without queries and keys too."""
    torch.manual_seed(0)
    layer = InLineAttention(16, 2, kernel=kernel).requires_grad_(False)
    x = shared_mean_tokens(32 * 32, 16)
    wanted = layer.double()(x.double(), (32, 32))
    with autocast(dtype):
        out = layer.float()(x.to(dtype), (32, 32))
    wanted = wanted.detach()
    assert relative_error(out, wanted) < TOLERANCE[dtype]

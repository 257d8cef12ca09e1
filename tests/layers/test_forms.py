"""The fast forms of the layers equal the plain ones."""

import pytest
import torch
from torch import nn

from inline_mm.layers import Block, InLineAttention, attention, block
from inline_mm.layers.tokens import tokens_to_output
from inline_mm.ops import feed_forward_in_chunks

LAYERS = {
    'global': {},
    'class token': dict(num_prefix_tokens=1),
    'lepe': dict(lepe=True),
    'without residual': dict(local_residual=False),
    'lepe alone': dict(lepe=True, local_residual=False),
    'class token without residual': dict(
        num_prefix_tokens=1, local_residual=False
    ),
    'windows': dict(window_size=7, shifted=True),
}


def outputs_and_gradients(layer, x, *arguments):
    x = x.clone().requires_grad_()
    out = layer(x, *arguments)
    cotangent = torch.cos(torch.arange(out.numel(), dtype=torch.float64))
    out.backward(cotangent.view_as(out).to(out.dtype))
    gradients = [x.grad, *(p.grad for p in layer.parameters())]
    layer.zero_grad()
    return [out.detach(), *(g.clone() for g in gradients)]


@pytest.mark.parametrize('pooled', [False, True])
@pytest.mark.parametrize('batch', [1, 3])
@pytest.mark.parametrize('name', LAYERS)
def test_folded_layer_equals_heads(name, batch, pooled, monkeypatch):
    monkeypatch.setattr(attention, 'FOLD_FROM', 0)
    torch.manual_seed(0)
    layer = InLineAttention(16, 2, **LAYERS[name]).double()
    tokens = 9 * 11 + layer.num_prefix_tokens
    x = torch.randn(batch, tokens, 16, dtype=torch.float64) + 5
    arguments = [(9, 11)] + pooled * [torch.randn_like(x)]
    folded = outputs_and_gradients(layer, x, *arguments)
    layer.fold = False
    plain = outputs_and_gradients(layer, x, *arguments)
    for left, right in zip(folded, plain, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= 1e-9 * size


@pytest.mark.parametrize('folded', [True, False])
def test_many_tokens_of_few_channels_are_folded(folded, monkeypatch):
    """By the number of tokens; other kernels never are."""
    calls = []
    monkeypatch.setattr(
        InLineAttention,
        '_attend_folded',
        lambda self, x, *_: calls.append(x.shape) or x,
    )
    height = 8 if folded else 7
    x = torch.randn(1, height * 4, 16)
    InLineAttention(16, 2)(x, (height, 4))
    assert bool(calls) is folded
    for options in (dict(kernel='relu'), dict(normalization='divide')):
        calls.clear()
        InLineAttention(16, 2, **options)(x, (height, 4))
        assert not calls


@pytest.mark.parametrize('batch', [1, 3])
def test_feed_forward_in_chunks_equals_the_whole(batch, monkeypatch):
    torch.manual_seed(0)
    layer = Block(16, InLineAttention(16, 2), 4, 1e-5, drop_path_rate=0.5)
    x = torch.randn(batch, 7 * 11, 16)
    layer.eval()
    whole = layer(x, (7, 11)).detach()
    monkeypatch.setattr(block, 'CHUNK_FROM', 0)
    # Seven tokens a chunk; the last is smaller.
    monkeypatch.setattr(block, 'CHUNK', 7 * 64)
    seen = []
    layer.norm2.register_forward_hook(lambda _, args, __: seen.append(args))
    with torch.no_grad():
        chunks = layer(x, (7, 11))
    assert len(seen) == -(-batch * 77 // 7)
    torch.testing.assert_close(chunks, whole, rtol=0, atol=1e-6)


@pytest.fixture
def chunked(monkeypatch):
    """Calls of the chunked function, which any size is worth here."""
    monkeypatch.setattr(block, 'CHUNK_FROM', 0)
    monkeypatch.setattr(block, 'CHUNK', 7 * 64)
    calls = []

    def note(*args):
        calls.append(args[0].shape)
        return feed_forward_in_chunks(*args)

    monkeypatch.setattr(block, 'feed_forward_in_chunks', note)
    return calls


def train_block(layer, x):
    """Output and all gradients of a step, with paths dropped by a seed."""
    x = x.clone().requires_grad_()
    torch.manual_seed(1)
    out = layer(x, (7, 11))
    out.square().sum().backward()
    grads = [p.grad for p in layer.parameters()]
    layer.zero_grad()
    return [out.detach(), x.grad, *grads]


@pytest.mark.parametrize('with_cp', [False, True])
@pytest.mark.parametrize('training', [False, True])
def test_training_in_chunks_equals_the_whole(
    with_cp, training, chunked, monkeypatch
):
    torch.manual_seed(0)
    layer = Block(
        16,
        InLineAttention(16, 2),
        4,
        1e-5,
        drop_path_rate=0.3,
        with_cp=with_cp,
    )
    layer.double().train(training)
    x = torch.randn(3, 77, 16, dtype=torch.float64)
    chunks = train_block(layer, x)
    assert chunked
    monkeypatch.setattr(block, 'CHUNK_FROM', 10**9)
    chunked.clear()
    whole = train_block(layer, x)
    assert not chunked
    assert torch.unique(chunks[0]).numel() > 1
    for mine, wanted in zip(chunks, whole, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-10, atol=1e-10)


def test_what_lies_between_the_layers_is_not_passed_over(chunked):
    x = torch.randn(1, 77, 16)
    layer = Block(16, InLineAttention(16, 2), 4, 1e-5, drop_rate=0.5)
    layer(x, (7, 11))
    assert not chunked, 'dropout'
    layer.eval()
    layer(x, (7, 11))
    assert len(chunked) == 1
    with torch.autocast('cpu', torch.bfloat16):
        layer(x, (7, 11))
    assert len(chunked) == 1, 'autocast'
    other = nn.Sequential(layer.ffn.layers[0][0], nn.Identity())
    layer.ffn.layers[0][0] = other  # as LoRA does
    layer(x, (7, 11))
    assert len(chunked) == 1, 'another module'


def test_compiled_training_has_no_chunks(chunked):
    torch.manual_seed(0)
    layer = Block(16, InLineAttention(16, 2), 4, 1e-5)
    x = torch.randn(1, 77, 16)
    compiled = torch.compile(layer, backend='aot_eager', fullgraph=True)
    out = compiled(x, (7, 11))
    assert not chunked
    torch.testing.assert_close(out, layer(x, (7, 11)), rtol=0, atol=1e-5)
    assert chunked


def test_outputs_are_contiguous_and_so_are_their_gradients():
    x = torch.randn(2, 70, 8, dtype=torch.float64, requires_grad=True)
    grads = []
    x.register_hook(grads.append)
    out = tokens_to_output(x, (7, 10))
    assert out.is_contiguous()
    want = x.detach().reshape(2, 7, 10, 8).permute(0, 3, 1, 2)
    assert torch.equal(out, want)
    cotangent = torch.randn_like(out)
    out.backward(cotangent)
    assert grads[0].is_contiguous()
    assert torch.equal(
        grads[0], cotangent.permute(0, 2, 3, 1).reshape(2, 70, 8)
    )


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_folded_layer_in_half_precision(dtype, monkeypatch):
    """By autocast, and as a model of that type."""
    monkeypatch.setattr(attention, 'FOLD_FROM', 0)
    torch.manual_seed(0)
    layer = InLineAttention(16, 2)
    x = torch.randn(2, 80, 16)
    want = outputs_and_gradients(layer, x, (8, 10))
    with torch.autocast('cpu', dtype):
        cast = layer(x, (8, 10))
        assert cast.dtype == dtype
    with torch.autocast('cpu', dtype):
        got = outputs_and_gradients(layer, x, (8, 10))
    half = layer.to(dtype)(x.to(dtype), (8, 10))
    assert half.dtype == dtype
    tolerance = 2e-2 if dtype is torch.float16 else 5e-2
    for left, right in zip(got, want, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= tolerance * size
    assert (half - want[0]).abs().max() <= tolerance * want[0].abs().max()

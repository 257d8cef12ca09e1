"""Backbones with another linear attention in the place of InLine's."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from small_archs import ARCHS, output_grids
from torch import nn

from inline_mm.complexity.count import count
from inline_mm.layers import (
    LINEAR_ATTENTIONS,
    InLineAttention,
    LinearAttention,
)

ATTENTIONS = pytest.mark.parametrize('attention', LINEAR_ATTENTIONS)
BACKBONES = pytest.mark.parametrize('name', ARCHS)
MAIN = pytest.mark.parametrize('name', ['InLineDeiT', 'InLineSwin'])


def build(name, attention='focused', **options):
    torch.manual_seed(0)
    options.setdefault('arch', ARCHS[name])
    model = MODELS.build(dict(type=name, attention=attention, **options))
    model.init_weights()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def image(height=64, width=96, batch=2):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, height, width, generator=generator)


def backward(outputs):
    sum((out * out).mean() for out in outputs).backward()


@ATTENTIONS
@BACKBONES
def test_odd_sizes_train_every_parameter(name, attention):
    model = build(name, attention, drop_path_rate=0.0)
    outputs = model(image(61, 127))
    for out, channels, grid in zip(
        outputs, model.num_features, output_grids(name, (61, 127)), strict=True
    ):
        assert out.shape == (2, channels, *grid)
        assert out.isfinite().all()
    backward(outputs)
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all() and parameter.grad.any(), key


@BACKBONES
def test_only_the_inline_blocks_change(name):
    plain, other = build(name, 'inline'), build(name)
    kinds = [
        {
            key: type(module)
            for key, module in model.named_modules()
            if key.endswith('.attn')
        }
        for model in (plain, other)
    ]
    assert kinds[0].keys() == kinds[1].keys()
    for key, kind in kinds[0].items():
        if kind is InLineAttention:
            kind = LinearAttention
        assert kinds[1][key] is kind, key
    assert InLineAttention in kinds[0].values()


@BACKBONES
def test_inline_is_the_default(name):
    results = []
    for options in ({}, dict(attention='inline')):
        torch.manual_seed(0)
        model = MODELS.build(dict(type=name, arch=ARCHS[name], **options))
        model.init_weights()
        results.append((model.state_dict(), model.eval()(image())))
    (state, outputs), (other_state, other_outputs) = results
    assert list(state) == list(other_state)
    assert all(torch.equal(state[key], other_state[key]) for key in state)
    assert all(map(torch.equal, outputs, other_outputs))


@ATTENTIONS
@MAIN
def test_checkpointing_changes_nothing(name, attention):
    results = []
    for with_cp in (False, True):
        model = build(name, attention, with_cp=with_cp).double()
        torch.manual_seed(1)
        outputs = model(image().double())
        backward(outputs)
        results.append([*outputs, *(p.grad for p in model.parameters())])
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


@ATTENTIONS
@MAIN
def test_training_lowers_the_loss(name, attention):
    torch.manual_seed(0)
    model = MODELS.build(
        dict(
            type=name, arch=ARCHS[name], attention=attention, out_indices=(1,)
        )
    )
    model.init_weights()
    head = nn.Linear(32, 4)
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    images, classes, losses = image(32, 32, batch=4), torch.arange(4), []
    for _ in range(25):
        with torch.autocast('cpu', torch.bfloat16):
            scores = head(model(images)[-1].mean((2, 3)))
        loss = nn.functional.cross_entropy(scores.float(), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert torch.tensor(losses).isfinite().all()
    assert losses[-1] < 0.5 * losses[0]


@ATTENTIONS
@MAIN
def test_true_sizes_keep_padding_out(name, attention):
    model = build(name, attention).double().eval()
    x = image().double()
    x[1, :, 48:] = 7.0  # must not be seen
    outputs = model(x, [(64, 96), (48, 96)])
    alone = model(x[1:, :, :48])
    for out, want in zip(outputs, alone, strict=True):
        rows = want.shape[2]
        torch.testing.assert_close(out[1:, :, :rows], want)


@ATTENTIONS
def test_a_block_costs_what_its_table_row_says(attention):
    """Multiply-adds, one for each; element-wise products aren't counted."""
    channels, head_dim = 64, 32
    grid = 8 * 12
    tokens = 1 + grid
    counts = []
    for depth in (1, 2):
        arch = dict(
            embed_dims=channels, depth=depth, num_heads=2, pretrain_img_size=64
        )
        backbone = dict(type='InLineDeiT', arch=arch, attention=attention)
        model = dict(type='ImageClassifier', backbone=backbone)
        cfg = Config(dict(default_scope='mmpretrain', model=model))
        counts.append(count(cfg, (128, 192))['flops'])
    products = 2 * tokens * channels * head_dim
    total = tokens * channels  # the sums that the weights are divided by
    own = {
        'elu': products + total,
        'efficient': products,
        'hydra': 0,
        'angular': products + total + 9 * grid * channels,
        'focused': products + total + 25 * grid * channels,
        'cosine': 2 * (products + total),
    }
    # Four projections, and eight in the feed-forward network.
    assert counts[1] - counts[0] == 12 * tokens * channels**2 + own[attention]


@ATTENTIONS
def test_windows_of_swin(attention):
    model = build('InLineSwin', attention, window_size=5).eval()
    for size in ((64, 96), (61, 127)):
        assert all(out.isfinite().all() for out in model(image(*size)))
    whole = build('InLineSwin', attention, window_size=24).eval()
    plain = build('InLineSwin', attention).eval()
    for left, right in zip(whole(image()), plain(image()), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(model(image())[0], plain(image())[0])


@pytest.mark.parametrize(
    ('option', 'default'),
    [
        (dict(kernel='relu'), "'identity'"),
        (dict(normalization='divide'), "'subtract'"),
        (dict(local_residual=False), 'True'),
    ],
    ids=str,
)
@BACKBONES
def test_switches_of_inline_are_refused(name, option, default):
    ((switch, value),) = option.items()
    with pytest.raises(ValueError) as error:
        build(name, 'hydra', **option)
    assert str(error.value) == (
        f"{switch} is a switch of attention='inline'; with attention='hydra' "
        f'it must stay {default}, got {value!r}'
    )


@BACKBONES
def test_unknown_attentions_are_refused(name):
    with pytest.raises(ValueError, match=r"'inline', 'elu', .*got 'linear'"):
        build(name, 'linear')

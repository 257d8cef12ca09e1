"""What is InLine-CSwin's own; see test_contract.py for the rest."""

import pytest
import torch

from inline_mm.layers import InLineAttention, StripeAttention
from inline_mm.models import InLineCSwin
from inline_mm.models.variants import CSWIN

SMALL = dict(
    embed_dims=16,
    depths=(2, 2, 3, 2),
    num_heads=(2, 2, 4, 4),
    inline_depths=(2, 2, 1, 0),
    softmax_window=3,
    pretrain_img_size=64,
)
# Split sizes 1, 2, 7 and the whole map, as published (arXiv 2107.00652).
PLAIN = {
    **SMALL,
    'inline_depths': (0, 0, 0, 0),
    'softmax_window': (1, 2, 7, 7),
}


def attentions(model):
    return [[block.attn for block in stage.blocks] for stage in model.stages]


@pytest.mark.parametrize('arch', CSWIN)
def test_layout_follows_the_block_type(arch):
    """One branch for InLine blocks and the last stage, two for stripes."""
    with torch.device('meta'):
        model = InLineCSwin(arch)
    row = CSWIN[arch]
    for index, stage in enumerate(attentions(model)):
        assert len(stage) == row['depths'][index]
        for position, attention in enumerate(stage):
            if position < row['inline_depths'][index]:
                assert isinstance(attention, InLineAttention)
                assert attention.lepe.groups == model.num_features[index]
                assert attention.kernel_predictor is not None
            else:
                last = index == 3
                width = None if last else row['softmax_window']
                assert attention.stripe_width == width
                assert len(attention.lepe) == (1 if last else 2)


def test_only_inline_blocks_pool_their_own_input():
    for stage in InLineCSwin(SMALL).stages:
        for block in stage.blocks:
            inline = isinstance(block.attn, InLineAttention)
            assert block.pool_input == inline


def test_kernels_come_from_the_unnormalised_input():
    """A constant added to all tokens is removed by the norm, not the pool."""
    torch.manual_seed(0)
    block = InLineCSwin(SMALL).eval().stages[0].blocks[0]
    x = torch.randn(1, 24, 16)
    plain, moved = (block.attn(block.norm1(y), (4, 6), y) for y in (x, x + 3))
    assert not torch.allclose(plain, moved, atol=1e-3)
    block.attn.kernel_predictor = None
    plain, moved = (block.attn(block.norm1(y), (4, 6), y) for y in (x, x + 3))
    torch.testing.assert_close(plain, moved, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize('arch', [SMALL, PLAIN], ids=['inline', 'plain'])
@pytest.mark.parametrize(
    'size', [(32, 32), (33, 97), (64, 224), (223, 225)], ids=str
)
def test_any_size_runs_and_reaches_every_parameter(arch, size):
    """At 32 pixels the maps of the last stages are smaller than a stripe."""
    model = InLineCSwin(arch)
    outputs = model(torch.randn(1, 3, *size))
    sides = [(side + 1) // 4 for side in size]
    for out, channels in zip(outputs, model.num_features, strict=True):
        assert out.shape == (1, channels, *sides)
        sides = [-(-side // 2) for side in sides]
    sum((out * out).mean() for out in outputs).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name


def test_plain_cswin_is_a_row():
    model = InLineCSwin(PLAIN)
    for index, stage in enumerate(attentions(model)):
        for attention in stage:
            assert isinstance(attention, StripeAttention)
            assert attention.stripe_width == (1, 2, 7, None)[index]

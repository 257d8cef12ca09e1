"""Every published variant: its parameters, and the tiny ones at any size."""

import math

import pytest
import torch
from mmengine.registry import MODELS
from official_keys import OFFICIAL_MODELS, official_keys
from small_archs import output_grids

import inline_mm  # noqa: F401
from inline_mm.models import variants

FAMILIES = {
    'pvt': ('InLinePVT', variants.PVT),
    'swin': ('InLineSwin', variants.SWIN),
    'cswin': ('InLineCSwin', variants.CSWIN),
    'deit': ('InLineDeiT', variants.DEIT),
}
VARIANTS = {
    f'{family}_{arch[0]}{"_384" if "384" in arch else ""}': (name, arch)
    for family, (name, table) in FAMILIES.items()
    for arch in table
}
NOT_PARAMETERS = ('relative_position_index', 'attn_mask')


def test_every_official_model_has_a_variant():
    assert set(VARIANTS) == set(OFFICIAL_MODELS)


@pytest.mark.parametrize('model', VARIANTS)
def test_parameter_count_is_the_official_one(model):
    name, arch = VARIANTS[model]
    with torch.device('meta'):
        backbone = MODELS.build(dict(type=name, arch=arch))
    official = sum(
        math.prod(shape)
        for key, shape, _ in official_keys(model)
        if not key.startswith('head.') and not key.endswith(NOT_PARAMETERS)
    )
    # Three output norms that a classifier doesn't have.
    new = 0
    if name in ('InLineSwin', 'InLineCSwin'):
        new = 2 * sum(backbone.num_features[:3])
    ours = sum(parameter.numel() for parameter in backbone.parameters())
    assert ours == official + new


@pytest.mark.parametrize('size', [(224, 224), (193, 640)], ids=str)
@pytest.mark.parametrize('model', VARIANTS)
def test_shapes_of_every_variant(model, size):
    """Traced on the meta device, which computes nothing."""
    name, arch = VARIANTS[model]
    with torch.device('meta'):
        backbone = MODELS.build(dict(type=name, arch=arch))
        outputs = backbone(torch.empty(2, 3, *size))
    assert [tuple(out.shape) for out in outputs] == [
        (2, channels, *grid)
        for channels, grid in zip(
            backbone.num_features, output_grids(name, size), strict=True
        )
    ]


@pytest.mark.parametrize('size', [(33, 97), (64, 224), (223, 225)], ids=str)
@pytest.mark.parametrize('name', [name for name, _ in FAMILIES.values()])
def test_tiny_variants_train_at_any_size(name, size):
    torch.manual_seed(0)
    backbone = MODELS.build(dict(type=name, arch='tiny'))
    backbone.init_weights()
    outputs = backbone(torch.randn(1, 3, *size))
    sum((out * out).mean() for out in outputs).backward()
    for key, parameter in backbone.named_parameters():
        assert torch.isfinite(parameter.grad).all(), key


@pytest.mark.parametrize('name', [name for name, _ in FAMILIES.values()])
def test_tiny_variants_take_a_detector_sized_image(name):
    torch.manual_seed(0)
    backbone = MODELS.build(dict(type=name, arch='tiny')).eval()
    with torch.no_grad():
        outputs = backbone(torch.randn(1, 3, 800, 1333))
    assert all(torch.isfinite(out).all() for out in outputs)

"""The pyramid that gives InLine-DeiT's one map to detectors."""

import pytest
import torch
from mmengine.registry import MODELS

import inline_mm  # noqa: F401


def build(**options):
    torch.manual_seed(0)
    config = dict(type='SimplePyramid', in_channels=16, out_channels=8)
    return MODELS.build(config | options)


@pytest.mark.parametrize('grid', [(1, 1), (2, 2), (3, 7), (14, 8)], ids=str)
@pytest.mark.parametrize('num_outs', [4, 5])
def test_strides_and_gradients(grid, num_outs):
    neck = build(num_outs=num_outs)
    x = torch.randn(2, 16, *grid, requires_grad=True)
    outputs = neck((x,))
    strides = (4, 8, 16, 32, 64)[:num_outs]
    for out, stride in zip(outputs, strides, strict=True):
        sides = [-(-side * 16 // stride) for side in grid]
        assert out.shape == (2, 8, *sides)
        assert out.isfinite().all()
    sum((out * torch.randn_like(out)).sum() for out in outputs).backward()
    assert all(p.grad.any() for p in neck.parameters())
    assert x.grad.any()


def test_each_output_is_normalised_over_its_channels():
    for out in build()((torch.randn(1, 16, 6, 4),)):
        mean = out.mean(1)
        torch.testing.assert_close(mean, torch.zeros_like(mean))


@pytest.mark.parametrize(
    ('options', 'expected'),
    [(dict(in_channels=18), 'multiple of 4'), (dict(num_outs=3), '4 or 5')],
)
def test_mistakes_are_refused(options, expected):
    with pytest.raises(ValueError, match=expected):
        build(**options)


def test_several_maps_are_refused():
    x = torch.randn(1, 16, 4, 4)
    with pytest.raises(ValueError, match='takes one map, got 2'):
        build()((x, x))

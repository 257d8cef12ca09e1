"""Rows of one's own: what `arch` as a dict must hold."""

import pytest
from mmengine.registry import MODELS

import inline_mm  # noqa: F401
from inline_mm.models import variants

ROW = dict(
    embed_dims=16,
    depths=(2, 2, 3, 2),
    num_heads=(1, 2, 4, 8),
    inline_depths=(2, 2, 1, 0),
    softmax_window=3,
    pretrain_img_size=64,
)


@pytest.mark.parametrize(
    ('key', 'value', 'expected'),
    [
        ('depths', (1, 1, 1), '4 numbers'),
        ('depths', 2, '4 numbers'),
        ('embed_dims', (16, 32, 64, 128), 'a number'),
        ('inline_depths', (0, 0, 0, -1), 'at least 0'),
        ('inline_depths', (2, 2, 4, 0), 'not exceed depths'),
        ('softmax_window', 0, 'at least 1'),
        ('softmax_window', (1, 2, 7, 7), 'a number'),
        ('num_heads', (1, 2, 4, 7), '7 heads for 128 channels'),
        ('num_heads', ('1', 2, 4, 8), '4 numbers'),
        ('pretrain_img_size', 16, 'at least 32 pixels'),
    ],
)
def test_wrong_values_are_refused_by_name(key, value, expected):
    with pytest.raises(ValueError, match=key) as error:
        MODELS.build(dict(type='InLineSwin', arch=ROW | {key: value}))
    assert expected in str(error.value)


def test_other_types_are_refused():
    with pytest.raises(TypeError, match='name or a dict'):
        variants.get_variant(variants.PVT, None)


@pytest.mark.parametrize('size', [0, -64, 16.0, (64, 64)])
def test_pretraining_size_is_a_number_of_pixels(size):
    with pytest.raises(ValueError, match='pretrain_img_size'):
        MODELS.build(dict(type='InLinePVT', pretrain_img_size=size))


def test_stripes_of_cswin_may_differ_by_stage():
    row = ROW | dict(num_heads=(2, 2, 2, 2), softmax_window=(1, 2, 7, 7))
    assert variants.get_variant(variants.CSWIN, row) == row

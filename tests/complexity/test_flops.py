"""The count of multiply-adds: by hand, by golden data, by form of running."""

import json
import subprocess
import sys

import pytest
import torch
from golden import FOLDER
from mmengine.config import Config
from recipes import SIZES, load
from tiny import TOOLS

from inline_mm.complexity import count as flops
from inline_mm.complexity.count import count
from inline_mm.complexity.report import report
from inline_mm.complexity.run import default_shape
from inline_mm.engine.launch import LaunchError, shipped_configs

GOLDEN = json.loads((FOLDER / 'flops.json').read_text())['models']


def classifier(**backbone):
    """A config of a bare backbone in a classifier."""
    return Config(
        dict(
            default_scope='mmpretrain',
            model=dict(type='ImageClassifier', backbone=backbone),
        )
    )


def pvt(depth):
    """InLine-PVT with so many blocks of 64 channels in its first stage."""
    return classifier(
        type='InLinePVT',
        arch=dict(
            embed_dims=(64, 64, 64, 64),
            depths=(depth, 1, 1, 1),
            num_heads=(2, 2, 2, 2),
            mlp_ratios=(8, 4, 4, 4),
            pretrain_img_size=224,
        ),
    )


def deit(**changes):
    arch = dict(embed_dims=64, depth=2, num_heads=2, pretrain_img_size=224)
    return classifier(type='InLineDeiT', arch=arch, **changes)


SOFTMAX = dict(normalization='softmax', local_residual=False)


def test_a_block_costs_what_the_formula_says():
    height, width, channels, head_dim, ratio = 24, 40, 64, 32, 8
    tokens = height * width
    expected = (
        4 * tokens * channels**2  # queries, keys, values and projection
        + 2 * tokens * channels * head_dim  # keys with values, queries with M
        + 9 * tokens * channels  # the dynamic 3x3
        + 10 * channels * head_dim  # the predictor of its kernels
        + 2 * ratio * tokens * channels**2  # feed-forward
    )
    shape = (4 * height, 4 * width)
    one, two = (count(pvt(depth), shape)['flops'] for depth in (1, 2))
    assert two - one == pytest.approx(expected, rel=0.01)


def test_inline_grows_with_the_pixels_and_softmax_faster():
    def growth(cfg):
        small, large = (
            count(cfg, (side, side))['flops'] for side in (256, 512)
        )
        return large / small

    assert growth(deit()) == pytest.approx(4, rel=0.01)
    assert growth(deit(**SOFTMAX)) > 5


def config_of(case):
    """Name of the shipped classifier of a golden case, such as 'swin_t'."""
    family, size = case.split('_')[:2]
    side = GOLDEN[case]['img_size']
    end = '' if side == 224 else f'-{side}'
    batch = 64 if side == 384 else 128
    return f'inline-{family}-{SIZES[size]}_8xb{batch}_in1k{end}'


@pytest.mark.parametrize(
    'case',
    [
        pytest.param(
            case, marks=() if case.endswith('_t') else pytest.mark.heavy
        )
        for case in GOLDEN
    ],
)
def test_classifiers_are_counted_as_the_official_models(case):
    counts = count(load(config_of(case)))
    assert counts['params'] == GOLDEN[case]['num_params']
    # Theirs has a product with the mean of the keys, ours has it in M.
    expected = GOLDEN[case]['flops_mul_add_as_2'] / 2
    assert counts['flops'] == pytest.approx(expected, rel=1e-3)
    assert counts['input_shape'] == [GOLDEN[case]['img_size']] * 2
    assert counts['uncounted'] == []


def test_a_detector_by_parts():
    cfg = load('mask-rcnn_inline-pvt-t_fpn_1x_coco')
    before = cfg.pretty_text
    state = torch.get_rng_state()
    counts = count(cfg)
    assert counts['input_shape'] == [800, 1280]
    assert list(counts['parts']) == [
        'backbone',
        'neck',
        'rpn_head',
        'roi_head',
    ]
    for key in ('params', 'flops'):
        total = sum(part[key] for part in counts['parts'].values())
        assert total == counts[key]
        assert all(part[key] for part in counts['parts'].values())
    assert '1000 regions' in counts['assumptions'][0]
    assert '100 through the mask head' in counts['assumptions'][0]
    assert cfg.pretty_text == before
    assert torch.equal(torch.get_rng_state(), state)


def test_running_with_values_gives_the_same_count(monkeypatch):
    """Among others, attention has an operator of its own on CPUs."""
    cfg = deit(**SOFTMAX)
    without = count(cfg, (64, 64))

    def ask_for_values(model, images):
        assert images.sum().item() == 0
        return run(model, images)

    run = flops.run
    monkeypatch.setattr(flops, 'run', ask_for_values)
    counts = count(cfg, (64, 64))
    assert 'random weights' in counts.pop('assumptions')[-1]
    without.pop('assumptions')
    assert counts == without


def test_names_what_it_can_not_count():
    counts = count(load('dino-4scale_inline-swin-t_8xb2-12e_coco'), (256, 256))
    assert counts['uncounted'] == [
        'grid_sampler_2d',
        'mmcv MultiScaleDeformableAttention',
    ]


@pytest.mark.parametrize(
    ('name', 'shape'),
    [
        ('retinanet_inline-pvt-t_fpn_1x_coco', (800, 1280)),
        ('fpn_inline-pvt-t_8xb4-40k_ade20k-512x512', (512, 512)),
        ('upernet_inline-swin-t_8xb2-160k_ade20k-512x512', (512, 2048)),
        ('inline-deit-small_8xb128_in1k-288', (288, 288)),
        ('inline-swin-base_8xb64_in1k-384', (384, 384)),
    ],
)
def test_default_shape(name, shape):
    assert default_shape(load(name)) == shape


def test_says_why_it_can_not_count():
    with pytest.raises(ValueError, match='how large its images are'):
        count(deit())
    with pytest.raises(ValueError, match=r"can not be built.*'depth'"):
        count(classifier(type='InLinePVT', depth=50), (64, 64))
    with pytest.raises(ValueError, match=r'16x16 pixels.*at least 32'):
        count(pvt(1), (16, 16))


def call(*arguments):
    return subprocess.run(
        [sys.executable, TOOLS / 'get_flops.py', *arguments],
        capture_output=True,
        text=True,
    )


def test_tool_prints_and_writes(tmp_path):
    name, file = 'inline-deit-tiny_8xb128_in1k', tmp_path / 'new' / 'c.json'
    out = call(shipped_configs()[name], '--json', file)
    assert out.returncode == 0, out.stderr
    counts = json.loads(file.read_text())
    assert counts == dict(config=name) | count(load(name))
    assert '224x224' in out.stdout
    assert '6.48 M' in out.stdout and '1.11 G' in out.stdout


def test_tool_refuses_in_one_sentence():
    out = call('inline-deit-tiny_8xb128_in1k', '--shape', '0', '9')
    assert out.returncode == 1
    assert '--shape takes a height and a width' in out.stderr
    assert 'Traceback' not in out.stderr
    with pytest.raises(LaunchError, match='--json must end with'):
        report('inline-deit-tiny_8xb128_in1k', json_file='a.txt')
    with pytest.raises(LaunchError, match='neither a file nor the name'):
        report('inline-deit-huge')

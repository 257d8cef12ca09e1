"""The baselines: recipes of ours with another backbone, and nothing else."""

import pytest
from recipes import (
    RECIPES,
    check_head_comment,
    check_one_step,
    inheritance_depth,
    load,
)
from tiny import build_model

from inline_mm.compare import published
from inline_mm.complexity.count import count
from inline_mm.engine.launch import shipped_configs

SIBLINGS = {name.replace('inline-', ''): name for name in RECIPES}
CLASSIFIERS = {
    'cswin-tiny_8xb128_in1k': 'inline-cswin-tiny_8xb128_in1k',
    'cswin-small_8xb128_in1k': 'inline-cswin-small_8xb128_in1k',
    'cswin-base_8xb128_in1k': 'inline-cswin-base_8xb128_in1k',
    'deit-tiny_8xb128_in1k': 'inline-deit-tiny_8xb128_in1k',
    'deit-small_8xb128_in1k': 'inline-deit-small_8xb128_in1k-288',
    'deit-base_8xb128_in1k': 'inline-deit-base_8xb128_in1k-448',
}
# One of each host and backbone.
QUICK = [
    'mask-rcnn_swin-t_fpn_ms-crop-1x_coco',
    'fpn_pvt-t_8xb4-40k_ade20k-512x512',
    'upernet_cswin-t_8xb2-160k_ade20k-512x512',
    'mask-rcnn_deit-t_simple-pyramid_ms-crop-1x_coco',
    'retinanet_pvt-t_fpn_1x_coco',
    'cswin-tiny_8xb128_in1k',
    'deit-tiny_8xb128_in1k',
]
PUBLISHED = [
    name
    for name in [*SIBLINGS, *CLASSIFIERS]
    if (published.for_config(name) or {}).get('flops_G')
]


def some(names, quick):
    """All names as parameters, those that aren't quick marked heavy."""
    return [
        pytest.param(name, marks=() if name in quick else pytest.mark.heavy)
        for name in names
    ]


def test_every_recipe_has_its_baseline():
    shipped = {
        name
        for name, path in shipped_configs().items()
        if path.parent.name == 'baselines'
    }
    assert shipped == {*SIBLINGS, *CLASSIFIERS}


@pytest.mark.parametrize('name', [*SIBLINGS, *CLASSIFIERS])
def test_head_comment_and_depth(name):
    check_head_comment(name)
    assert inheritance_depth(shipped_configs()[name]) <= 3
    sibling = (SIBLINGS | CLASSIFIERS)[name]
    assert f'# {sibling}.\n' in shipped_configs()[name].read_text()


@pytest.mark.parametrize('name', some(SIBLINGS, QUICK))
def test_only_the_backbone_differs(name):
    baseline, ours = load(name).to_dict(), load(SIBLINGS[name]).to_dict()
    kinds = [cfg['model'].pop('backbone')['type'] for cfg in (baseline, ours)]
    assert kinds[0] != kinds[1] or 'cswin' in name or 'deit' in name
    # The published DeiT has other widths than InLine-DeiT.
    if 'deit' in name:
        for cfg in (baseline, ours):
            for part in cfg['model'].values():
                if isinstance(part, dict):
                    part.pop('in_channels', None)
                    part.pop('embed_dim', None)
    # Where the weights lie is written beside the model.
    baseline.pop('checkpoint', None)
    assert baseline == ours


@pytest.mark.parametrize(
    'name',
    some([n for n in SIBLINGS if 'cswin' in n or 'deit' in n], QUICK),
)
def test_softmax_twins_have_softmax_attention_alone(name):
    backbone = load(name).model.backbone
    if backbone.type == 'InLineDeiT':
        assert backbone.normalization == 'softmax'
        assert backbone.local_residual is False
    else:
        assert tuple(backbone.arch.inline_depths) == (0, 0, 0, 0)


@pytest.mark.parametrize('name', some(SIBLINGS, QUICK[:3]))
def test_trains_one_step(name):
    check_one_step(name)


@pytest.mark.parametrize('name', some(CLASSIFIERS, QUICK))
def test_classifiers_build(name):
    cfg, ours = load(name), load(CLASSIFIERS[name])
    model = build_model(cfg)
    assert model.backbone.num_features[-1] == cfg.model.head.in_channels
    assert cfg.optim_wrapper == ours.optim_wrapper
    assert cfg.param_scheduler == ours.param_scheduler


@pytest.mark.parametrize('name', some(PUBLISHED, QUICK))
def test_multiply_adds_are_the_published(name):
    row = published.for_config(name)
    shape = (512, 2048) if row['host'] == 'mmseg' else None
    counts = count(load(name), shape)
    assert counts['flops'] / 1e9 == pytest.approx(row['flops_G'], rel=0.02)
    # CSwin's README gives its smallest segmentor more than it has.
    if row['params_M'] and name != 'upernet_cswin-t_8xb2-160k_ade20k-512x512':
        millions = counts['params'] / 1e6
        assert millions == pytest.approx(row['params_M'], abs=1.0)

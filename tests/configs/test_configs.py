"""Every shipped recipe: builds, has the right size and numbers, and trains."""

import copy

import pytest
import torch
from mmcv import _ext
from mmcv.ops import RoIAlign
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DATASETS
from recipes import (
    OPTIMISATION,
    RECIPES,
    SIZES,
    check_head_comment,
    check_one_step,
    family_and_size,
    inheritance_depth,
    load,
    weight_decays,
)
from tiny import build_model, seed, shrink

from inline_mm.engine.launch import shipped_configs


def test_table_lists_every_shipped_recipe():
    shipped = {
        name
        for name, path in shipped_configs().items()
        if path.parent.name.startswith('inline_')
        and path.parents[1].name != 'mmpretrain'
    }
    assert shipped == set(RECIPES)


@pytest.fixture(scope='module', params=RECIPES)
def built(request):
    """A shipped config and the model that its host builds, without memory."""
    cfg = load(request.param)
    with torch.device('meta'):
        return request.param, cfg, build_model(cfg)


def test_parameters(built):
    name, _, model = built
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    assert millions == pytest.approx(RECIPES[name][0], rel=5e-3)


def test_parameter_rules_match(built):
    _, cfg, model = built
    rules = cfg.optim_wrapper.get('paramwise_cfg', {}).get('custom_keys', {})
    names = [name for name, _ in model.named_parameters()]
    for key in rules:
        assert any(key in name for name in names), key


def test_arguments_of_the_recipe(built):
    name, cfg, model = built
    family, size = family_and_size(name)
    algorithm = name.split('_')[0]
    lr, decay, batch = (
        OPTIMISATION.get(f'{algorithm}_inline-{family}')
        or OPTIMISATION[algorithm]
    )
    backbone = cfg.model.backbone
    assert backbone.arch == SIZES[size]
    assert backbone.drop_path_rate == RECIPES[name][1]
    assert backbone.init_cfg == dict(
        type='InLinePretrained', checkpoint=f'inline-{family}-{SIZES[size]}'
    )
    assert cfg.optim_wrapper.type == 'OptimWrapper'
    assert cfg.optim_wrapper.optimizer.type == 'AdamW'
    assert cfg.optim_wrapper.optimizer.lr == lr
    assert cfg.optim_wrapper.optimizer.weight_decay == decay
    assert cfg.train_dataloader.batch_size == batch
    assert cfg.auto_scale_lr == dict(enable=False, base_batch_size=8 * batch)
    assert cfg.val_dataloader.batch_size == 1
    assert cfg.test_dataloader.batch_size == 1
    # The head has the channels of mmseg's Feature2Pyramid, mmdet's necks
    # have their own.
    fed = cfg.model.get('decode_head', cfg.model.get('neck')).in_channels
    if 'FPN' in (neck := cfg.model.get('neck', {})).get('type', ''):
        fed = neck.in_channels
    fed = fed if isinstance(fed, list) else [fed]
    assert list(model.backbone.num_features)[-len(fed) :] == fed


@pytest.mark.parametrize('name', RECIPES)
def test_schedule(name):
    cfg = load(name)
    if cfg.default_scope == 'mmdet':
        epochs = 36 if '3x' in name else 12
        assert cfg.train_cfg.max_epochs == epochs
        *warmup, steps = cfg.param_scheduler
        assert steps.end == epochs
        if name.startswith('dino'):
            assert not warmup
            assert steps.milestones == [11]
            return
        assert (warmup[0].start_factor, warmup[0].end) == (0.001, 500)
        assert steps.milestones == ([27, 33] if epochs == 36 else [8, 11])
    else:
        iters = 160000 if '160k' in name else 40000
        assert cfg.train_cfg.max_iters == iters
        *warmup, poly = cfg.param_scheduler
        assert poly.end == iters
        assert poly.power == (1.0 if warmup else 0.9)
        assert poly.begin == (1500 if warmup else 0)
        assert bool(warmup) == name.startswith('upernet')


@pytest.mark.parametrize('name', RECIPES)
def test_head_comment_and_depth(name):
    check_head_comment(name)
    assert inheritance_depth(shipped_configs()[name]) <= 3


@pytest.mark.parametrize(
    'name',
    [
        'mask-rcnn_inline-swin-t_fpn_ms-crop-1x_coco',
        'mask-rcnn_inline-pvt-t_fpn_1x_coco',
        'mask-rcnn_inline-cswin-t_fpn_ms-crop-3x_coco',
        'mask-rcnn_inline-deit-t_simple-pyramid_ms-crop-1x_coco',
        'upernet_inline-swin-t_8xb2-160k_ade20k-512x512',
    ],
)
def test_weight_decay(name):
    cfg = load(name)
    with torch.device('meta'):
        model = build_model(cfg)
    decays = weight_decays(model, cfg)
    exempt = {n for n, decay in decays.items() if decay == 0}
    decay = cfg.optim_wrapper.optimizer.weight_decay
    assert {v for n, v in decays.items() if n not in exempt} == {decay}
    if 'pvt' in name:
        assert not exempt
        return
    # Norms and tables of the backbone; not the biases, not the norms of necks
    # and heads.
    expected = set()
    for module_name, module in model.backbone.named_modules():
        if isinstance(module, torch.nn.LayerNorm):
            expected |= {
                f'backbone.{module_name}.{p}' for p in ('weight', 'bias')
            }
    tables = ('bias_table', 'cls_token', 'pos_embed')
    expected |= {n for n in decays if n.endswith(tables)}
    assert exempt == expected


# The smallest of each kind; longer schedules train the same models.
QUICK = [
    name
    for name in RECIPES
    if family_and_size(name)[1] == 't' and '-3x' not in name
]


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(
            name,
            marks=() if name in QUICK else pytest.mark.heavy,
        )
        for name in RECIPES
    ],
)
def test_trains_one_step(name):
    check_one_step(name)


@pytest.mark.parametrize('name', QUICK)
def test_mixed_precision(name, monkeypatch):
    """The losses under autocast, on the GPU where there is one.

    mmcv's kernels of RoIAlign and NMS for CPUs know no bfloat16 and get what
    float32 holds of it; on a GPU float16 is what `--amp` means.
    """
    device, dtype = 'cuda', torch.float16
    if not torch.cuda.is_available():
        device, dtype = 'cpu', torch.bfloat16
        roi_align, nms = RoIAlign.forward, _ext.nms
        monkeypatch.setattr(
            RoIAlign,
            'forward',
            lambda self, maps, rois: roi_align(
                self, maps.float(), rois.float()
            ).to(maps.dtype),
        )
        monkeypatch.setattr(
            _ext,
            'nms',
            lambda boxes, scores, **options: nms(
                boxes.float(), scores.float(), **options
            ),
        )
    seed()
    cfg = shrink(load(name))
    model = revert_sync_batchnorm(build_model(cfg))
    # Some parameters of DINO are whatever lay in memory until then.
    model.init_weights()
    model.to(device).train()
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    batch = pseudo_collate([dataset[0], dataset[1]])
    with torch.autocast(device, dtype):
        data = model.data_preprocessor(batch, training=True)
        loss, _ = model.parse_losses(model(**data, mode='loss'))
    loss.backward()
    assert loss.isfinite()
    for key, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), key


@pytest.mark.parametrize('name', ['mask-rcnn_inline-pvt-t_fpn_1x_coco'])
def test_reloads_as_dumped(name, tmp_path):
    cfg = load(name)
    cfg.dump(tmp_path / 'dumped.py')
    again = Config.fromfile(tmp_path / 'dumped.py')
    assert again.to_dict() == cfg.to_dict()
    assert shapes(build_model(again)) == shapes(build_model(cfg))


def shapes(model):
    return {k: tuple(v.shape) for k, v in model.state_dict().items()}


@pytest.mark.parametrize('family', ['pvt', 'swin'])
def test_swaps_backbones_on_a_stock_config(family):
    ours = dict(pvt='InLinePVT', swin='InLineSwin')[family]
    channels = dict(pvt=[64, 128, 320, 512], swin=[96, 192, 384, 768])[family]
    cfg = Config(
        dict(model=stock_model(), default_scope='mmdet'),
    )
    options = {
        'model.backbone._delete_': True,
        'model.backbone.type': ours,
        'model.backbone.arch': 'tiny',
        'model.neck.in_channels': channels,
    }
    cfg.merge_from_dict(options)
    assert type(build_model(cfg).backbone).__name__ == ours


def stock_model():
    return Config.fromfile(
        shipped_configs()['mask-rcnn_inline-pvt-t_fpn_1x_coco'].parents[1]
        / '_base_/models/mask-rcnn_inline-pvt_fpn.py'
    ).model


def test_names_the_key_left_from_another_backbone():
    cfg = load('mask-rcnn_inline-pvt-t_fpn_1x_coco')
    cfg.merge_from_dict({'model.backbone.depth': 50})
    with pytest.raises(TypeError, match="'depth'"):
        build_model(cfg)


def test_new_style_config(tmp_path):
    """A pure Python config that imports the class builds and reloads."""
    load('mask-rcnn_inline-swin-t_fpn_ms-crop-1x_coco').dump(
        tmp_path / 'base.py'
    )
    (tmp_path / 'leaf.py').write_text(
        'from mmengine.config import read_base\n'
        'from inline_mm.models import InLinePVT\n'
        'with read_base():\n'
        '    from .base import *\n'
        "model.update(backbone=dict(type=InLinePVT, arch='tiny'))\n"
        "model['neck'].update(in_channels=[64, 128, 320, 512])\n"
    )
    cfg = Config.fromfile(tmp_path / 'leaf.py')
    model = build_model(copy.deepcopy(cfg))
    cfg.dump(tmp_path / 'dumped.py')
    again = Config.fromfile(tmp_path / 'dumped.py')
    assert shapes(build_model(again)) == shapes(model)
    assert list(model.backbone.num_features) == [64, 128, 320, 512]

"""The ImageNet recipes: numbers, official weights in and logits out, tools."""

import math
import pickle
import re

import pytest
import torch
from forked import run_script
from golden import (
    OUTPUT_TOLERANCE,
    assert_close,
    draw,
    draw_weights,
    load_model_case,
)
from mmengine.dataset import pseudo_collate
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DATASETS
from mmpretrain import ImageClassificationInferencer, get_model
from official_keys import OFFICIAL_MODELS, meta_state_dict, official_keys
from recipes import (
    check_head_comment,
    inheritance_depth,
    load,
    weight_decays,
)
from tiny import DATA, TOOLS, build_model, seed

from inline_mm.checkpoint import convert_file, convert_official
from inline_mm.engine.launch import shipped_configs

# Epochs with and without those at the lowest learning rate, of warm-up.
EPOCHS = dict(
    pvt=(310, 300, 5),
    swin=(300, 300, 20),
    cswin=(310, 300, 20),
    deit=(300, 300, 20),
)
# By official name: recipe, drop path, weight decay, gradient clip.
RECIPES = {
    'pvt_t': ('inline-pvt-tiny_8xb128_in1k', 0.1, 0.05, None),
    'pvt_s': ('inline-pvt-small_8xb128_in1k', 0.1, 0.05, None),
    'pvt_m': ('inline-pvt-medium_8xb128_in1k', 0.3, 0.05, 1.0),
    'pvt_l': ('inline-pvt-large_8xb128_in1k', 0.3, 0.05, 1.0),
    'swin_t': ('inline-swin-tiny_8xb128_in1k', 0.2, 0.05, 5.0),
    'swin_s': ('inline-swin-small_8xb128_in1k', 0.3, 0.05, 5.0),
    'swin_b': ('inline-swin-base_8xb128_in1k', 0.5, 0.05, 5.0),
    'swin_b_384': ('inline-swin-base_8xb64_in1k-384', 0.5, 1e-8, 5.0),
    'cswin_t': ('inline-cswin-tiny_8xb128_in1k', 0.2, 0.05, None),
    'cswin_s': ('inline-cswin-small_8xb128_in1k', 0.4, 0.05, None),
    'cswin_b': ('inline-cswin-base_8xb128_in1k', 0.5, 0.1, None),
    'cswin_b_384': ('inline-cswin-base_8xb64_in1k-384', 0.7, 1e-8, None),
    'deit_t': ('inline-deit-tiny_8xb128_in1k', 0.1, 0.05, 5.0),
    'deit_s': ('inline-deit-small_8xb128_in1k-288', 0.1, 0.05, 5.0),
    'deit_b': ('inline-deit-base_8xb128_in1k-448', 0.1, 0.05, 5.0),
}
TINY = ('pvt_t', 'swin_t', 'cswin_t', 'deit_t')
IMAGES = sorted((DATA / 'coco' / 'val2017').glob('*.jpg'))


def build(cfg):
    """The classifier as the runner builds it."""
    cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)
    return build_model(cfg)


def test_table_lists_every_model():
    shipped = {
        name
        for name, path in shipped_configs().items()
        if path.parents[1].name == 'mmpretrain'
        and path.parent.name != 'baselines'
    }
    assert shipped == {recipe[0] for recipe in RECIPES.values()}
    assert set(RECIPES) == set(OFFICIAL_MODELS)


@pytest.fixture(scope='module', params=RECIPES)
def built(request):
    """An official name, its config and the classifier, without memory."""
    cfg = load(RECIPES[request.param][0])
    with torch.device('meta'):
        return request.param, cfg, build(cfg)


def test_takes_the_official_state_dict_whole(built):
    name, _, model = built
    official = convert_official(meta_state_dict(name), keep_head=True)
    converted = {
        key if key.startswith('head.') else f'backbone.{key}': value.shape
        for key, value in official.items()
    }
    assert {k: v.shape for k, v in model.state_dict().items()} == converted


def test_arguments_of_the_recipe(built):
    name, cfg, _ = built
    recipe, drop_path, decay, clip = RECIPES[name]
    batch = int(re.search(r'8xb(\d+)', recipe).group(1))
    assert cfg.model.backbone.drop_path_rate == drop_path
    assert cfg.optim_wrapper.type == 'OptimWrapper'
    assert cfg.optim_wrapper.optimizer.type == 'AdamW'
    assert cfg.optim_wrapper.optimizer.weight_decay == decay
    rate = 2e-5 if '384' in name else 5e-4
    assert cfg.optim_wrapper.optimizer.lr == rate * 8 * batch / 512
    assert cfg.optim_wrapper.get('clip_grad') == (
        dict(max_norm=clip) if clip else None
    )
    assert cfg.train_dataloader.batch_size == batch
    assert cfg.auto_scale_lr == dict(enable=False, base_batch_size=8 * batch)
    averaged = [hook.momentum for hook in cfg.get('custom_hooks', ())]
    expected = 1 - 0.9996 ** (8 * batch / 4096)
    assert averaged == (
        [pytest.approx(expected, rel=1e-3)] if 'cswin' in name else []
    )


def test_image_size(built):
    name, cfg, _ = built
    side = {'384': 384, 'deit_s': 288, 'deit_b': 448}.get(
        '384' if '384' in name else name, 224
    )
    crop = cfg.train_dataloader.dataset.pipeline[1]
    assert (crop.type, crop.scale) == ('RandomResizedCrop', side)
    for loader in (cfg.val_dataloader, cfg.test_dataloader):
        pipeline = loader.dataset.pipeline
        if side == 384:
            assert (pipeline[1].type, pipeline[1].scale) == ('Resize', side)
        else:
            assert pipeline[1].scale == int(side * 256 / 224)
            assert pipeline[2].crop_size == side


def test_schedule(built):
    name, cfg, _ = built
    longest, cosine_end, warmup_end = EPOCHS[name.split('_')[0]]
    if '384' in name:
        longest, cosine_end, warmup_end = 30, 30, 5
    warmup, cosine = cfg.param_scheduler
    assert cfg.train_cfg.max_epochs == longest
    assert (warmup.begin, warmup.end) == (0, warmup_end)
    assert (cosine.begin, cosine.end) == (warmup_end, cosine_end)
    lr = cfg.optim_wrapper.optimizer.lr
    assert cosine.eta_min == pytest.approx(0.01 * lr)


def test_weight_decay(built):
    """None for what has one dimension, nor for the tables of the family."""
    name, cfg, model = built
    family = name.split('_')[0]
    tables = dict(swin=['bias_table'], deit=['cls_token', 'pos_embed'])
    rules = tuple(tables.get(family, ())) if '384' not in name else ()
    decays = weight_decays(model, cfg)
    exempt = {key for key, decay in decays.items() if decay == 0}
    assert exempt == {
        key
        for key, parameter in model.named_parameters()
        if parameter.ndim == 1 or key.endswith(rules)
    }
    custom = cfg.optim_wrapper.paramwise_cfg.get('custom_keys', {})
    assert all(any(key in name for name in decays) for key in custom)


def test_head_comment_and_depth(built):
    name = RECIPES[built[0]][0]
    check_head_comment(name)
    assert inheritance_depth(shipped_configs()[name]) <= 3


@pytest.fixture(scope='module')
def converted(tmp_path_factory):
    """Official files of the tiny models, converted with their classifiers."""
    folder = tmp_path_factory.mktemp('converted')

    def convert(name):
        path = folder / f'{name}.pth'
        if not path.exists():
            settings, _ = load_model_case(name)
            weights = draw_weights(official_keys(settings['model']))
            official = folder / 'official.pth'
            torch.save({'model': weights}, official)
            convert_file(official, path, keep_head=True)
        return path

    return convert


@pytest.mark.parametrize('name', TINY)
def test_logits_equal_the_official_ones(name, converted):
    config = shipped_configs()[RECIPES[name][0]]
    model = get_model(str(config), pretrained=str(converted(name)))
    settings, numbers = load_model_case(name)
    image = draw(settings['input_name'], settings['input_shape'])
    for dtype in (torch.float32, torch.float64):
        with torch.no_grad():
            logits = model.to(dtype)(image.to(dtype), mode='tensor')
        assert_close(logits, numbers, 'logits_f64', OUTPUT_TOLERANCE[dtype])


def lay_out_imagenet(folder):
    """Bundled images in mmpretrain's layout, with list files."""
    root = folder / 'data' / 'imagenet'
    (root / 'meta').mkdir(parents=True)
    for split in ('train', 'val'):
        (root / split).symlink_to(DATA / 'coco' / 'val2017')
        lines = [f'{path.name} {i}' for i, path in enumerate(IMAGES)]
        (root / 'meta' / f'{split}.txt').write_text('\n'.join(lines))
    return root


def test_test_tool_and_inferencer(tmp_path, converted):
    """Averaged weights are in this recipe: they are the file's too."""
    name = RECIPES['cswin_t'][0]
    checkpoint = converted('cswin_t')
    lay_out_imagenet(tmp_path)
    options = ('num_workers=0', 'batch_size=3')
    done = run_script(
        tmp_path,
        TOOLS / 'test.py',
        name,
        checkpoint,
        '--out=scores.pkl',
        '--cfg-options',
        *(f'test_dataloader.{option}' for option in options),
    )
    assert done.returncode == 0, done.output[-3000:]
    assert 'accuracy/top1: ' in done.output
    with open(tmp_path / 'scores.pkl', 'rb') as file:
        tested = pickle.load(file)
    assert [int(sample['gt_label']) for sample in tested] == list(
        range(len(IMAGES))
    )
    inferencer = ImageClassificationInferencer(
        str(shipped_configs()[name]), pretrained=str(checkpoint), device='cpu'
    )
    inferred = inferencer([str(path) for path in IMAGES])
    for a, b in zip(tested, inferred, strict=True):
        assert a['pred_score'].sum().item() == pytest.approx(1, abs=1e-5)
        assert torch.allclose(
            a['pred_score'], torch.from_numpy(b['pred_scores']), atol=1e-5
        )


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=() if name in TINY else pytest.mark.heavy)
        for name in RECIPES
    ],
)
def test_trains_one_step(name, tmp_path):
    seed()
    cfg = load(RECIPES[name][0])
    cfg.model.backbone.init_cfg = None
    # A path dropped for both images gets no gradient in the one step.
    cfg.model.backbone.drop_path_rate = 0.0
    cfg.train_dataloader.dataset.data_root = str(lay_out_imagenet(tmp_path))
    cfg.train_dataloader.dataset.pipeline[1].scale = 64
    model = build(cfg)
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    before = {
        n: p.detach().clone()
        for n, p in model.named_parameters()
        if p.ndim > 1
    }
    model.train()
    losses = model.train_step(
        pseudo_collate([dataset[0], dataset[1]]), optim_wrapper
    )
    assert math.isfinite(losses['loss'].item())
    assert not [
        n
        for n, p in model.named_parameters()
        if p.ndim > 1 and torch.equal(p, before[n])
    ]

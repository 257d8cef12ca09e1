"""InLinePretrained: what does not fit stops in one sentence."""

import itertools

import pytest
import torch
from mmengine.registry import MODELS
from small_checkpoints import (
    FAMILIES,
    build,
    load,
    tiny_arch,
    tiny_state_dict,
)

from inline_mm.checkpoint import (
    CheckpointError,
    InLinePretrained,
    convert_file,
    convert_official,
    describe_init,
)


@pytest.mark.parametrize(
    ('given', 'wanted'), list(itertools.permutations(FAMILIES, 2))
)
def test_another_family_is_named(given, wanted, official):
    titles = dict(
        pvt='InLine-PVT',
        swin='InLine-Swin',
        cswin='InLine-CSwin',
        deit='InLine-DeiT',
    )
    with pytest.raises(CheckpointError) as caught:
        load(build(wanted), official(given), allow_partial=True)
    assert f'holds {titles[given]} of depths' in str(caught.value)
    assert f'but the model is {titles[wanted]} of depths' in str(caught.value)


@pytest.mark.parametrize('family', FAMILIES)
def test_another_variant_is_named_with_the_first_tensors(family, official):
    arch = tiny_arch(family)
    depth = 'depth' if family == 'deit' else 'depths'
    arch[depth] = 3 if family == 'deit' else (2, 2, 3, arch['depths'][3])
    backbone = build(family, arch=arch)
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    with pytest.raises(CheckpointError) as caught:
        load(backbone, official(family))
    message = str(caught.value)
    first = 'blocks.2.' if family == 'deit' else 'stages.2.blocks.2.'
    assert 'not in the file: ' + first in message
    assert 'backbone tensors' in message and 'loaded' not in message
    for key, tensor in backbone.state_dict().items():
        assert torch.equal(tensor, before[key]), 'changed though refused'


def test_another_width_is_an_error(official):
    arch = {**tiny_arch('pvt'), 'embed_dims': (16, 16, 40, 64)}
    with pytest.raises(CheckpointError, match='of another shape: ') as caught:
        load(build('pvt', arch=arch), official('pvt'))
    assert 'is (8, 3, 4, 4) in the file, (16, 3, 4, 4)' in str(caught.value)


def test_partial_is_loud_and_never_called_loaded(official, log):
    backbone = build('pvt', in_channels=4)
    path = official('pvt')
    with pytest.raises(CheckpointError, match='allow_partial=True'):
        load(backbone, path)
    backbone = load(build('pvt', in_channels=4), path, allow_partial=True)
    total = backbone.init_info['total']
    assert backbone.init_info['matched'] == total - 1
    message = log()[-1]
    assert f'matched {total - 1} of {total} backbone tensors' in message
    assert 'NOT of the same shape' in message
    assert ('loaded' in message) == ((total - 1) / total >= 0.99)
    assert f'matched {total - 1} of {total}' in describe_init(backbone)


def test_below_99_percent_nothing_is_called_loaded(official, log):
    arch = {**tiny_arch('pvt'), 'depths': (2, 2, 2, 3)}
    load(build('pvt', arch=arch), official('pvt'), allow_partial=True)
    assert 'took a part of InLine-PVT' in log()[-1]
    assert 'loaded' not in log()[-1]


def test_partial_needs_at_least_one_tensor(official):
    arch = {**tiny_arch('pvt'), 'embed_dims': (16, 32, 80, 128)}
    with pytest.raises(CheckpointError, match='matched 0 of'):
        load(build('pvt', arch=arch), official('pvt'), allow_partial=True)


@pytest.mark.parametrize('family', ['pvt', 'swin', 'cswin'])
def test_unused_stages_must_be_whole(family, tmp_path):
    tensors = tiny_state_dict(family)
    lost = next(k for k in reversed(tensors) if 'norm1.weight' in k)
    del tensors[lost]
    torch.save(tensors, tmp_path / 'cut.pth')
    backbone = build(family, out_indices=(0,))
    with pytest.raises(CheckpointError, match=r'not in the file: stages\.3'):
        load(backbone, tmp_path / 'cut.pth')


def test_half_an_output_norm_is_an_error(tmp_path):
    ours = convert_official(tiny_state_dict('swin'))
    torch.save({**ours, 'norm0.weight': torch.ones(12)}, tmp_path / 'a.pth')
    with pytest.raises(CheckpointError, match=r'not in the file: norm0\.bias'):
        load(build('swin'), tmp_path / 'a.pth')
    with pytest.raises(CheckpointError, match=r'not in the file: norm0\.bias'):
        load(build('swin', out_indices=(3,)), tmp_path / 'a.pth')


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_weights_that_are_no_numbers_are_refused(value, official):
    path = official('deit', cls_token=torch.full((1, 1, 24), value))
    with pytest.raises(CheckpointError, match=r'NaN or infinite.*cls_token'):
        load(build('deit'), path)
    with pytest.raises(CheckpointError, match=r'NaN or infinite.*cls_token'):
        convert_file(path, path.with_name('converted.pth'))
    assert not path.with_name('converted.pth').exists()


@pytest.mark.parametrize('dtype', [torch.int8, torch.complex64])
def test_weights_of_another_type_are_refused(dtype, official):
    path = official('deit', cls_token=torch.ones(1, 1, 24, dtype=dtype))
    with pytest.raises(CheckpointError, match=r'no floating.*cls_token'):
        load(build('deit'), path)


def test_other_modules_are_told_where_it_belongs(official):
    path = official('swin')
    with pytest.raises(CheckpointError, match='got Linear; give it to the'):
        InLinePretrained(path)(torch.nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match='got ModuleDict'):
        InLinePretrained(path)(torch.nn.ModuleDict({'backbone': build('pvt')}))
    with pytest.raises(CheckpointError, match='got SwinTransformer'):
        InLinePretrained(path)(
            MODELS.build(dict(type='mmdet.SwinTransformer', depths=(1,) * 4))
        )


@pytest.mark.parametrize(
    ('given', 'wanted', 'message'),
    [
        (
            dict(type='mmdet.SwinTransformer', depths=(1,) * 4),
            'swin',
            'holds another model .with stages.0.blocks.0.attn.w_msa',
        ),
        (
            dict(type='mmpretrain.VisionTransformer', arch='deit-t'),
            'deit',
            'holds another model .with layers.0',
        ),
        (
            dict(type='mmdet.PyramidVisionTransformer', num_layers=(1,) * 4),
            'pvt',
            'no tensor of an InLine backbone',
        ),
        (
            dict(type='mmdet.ResNet', depth=18),
            'cswin',
            'no tensor of an InLine backbone',
        ),
    ],
    ids=lambda value: value['type'] if isinstance(value, dict) else '',
)
def test_backbones_of_the_hosts_are_no_inline_models(
    given, wanted, message, tmp_path
):
    tensors = MODELS.build(given).state_dict()
    path = tmp_path / 'file.pth'
    torch.save({'state_dict': tensors}, path)
    with pytest.raises(CheckpointError, match=message):
        InLinePretrained(path)(build(wanted))


@pytest.mark.parametrize('family', ['pvt', 'deit'])
def test_softmax_models_under_official_names_are_named(family, tmp_path):
    tensors = {
        key: tensor
        for key, tensor in tiny_state_dict(family).items()
        if 'residual' not in key
    }
    path = tmp_path / 'file.pth'
    torch.save({'model': tensors}, path)
    with pytest.raises(CheckpointError, match='with softmax attention, but'):
        InLinePretrained(path)(build(family))


def test_an_initialiser_behind_it_is_refused(official):
    backbone = build('swin')
    backbone.init_cfg = [
        dict(type='InLinePretrained', checkpoint=official('swin')),
        dict(type='TruncNormal', layer='Linear'),
    ]
    with pytest.raises(CheckpointError, match='must be the last'):
        backbone.init_weights()
    backbone.init_cfg.reverse()
    backbone.init_weights()
    assert describe_init(backbone) != 'random'


@pytest.mark.parametrize('checkpoint', [None, 3, ['a.pth']])
def test_a_checkpoint_must_be_named(checkpoint):
    with pytest.raises(TypeError, match='must be a path, a URL'):
        InLinePretrained(checkpoint)

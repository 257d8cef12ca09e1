"""Converted files: what is in them, and who can use them."""

import hashlib
import re

import pytest
import torch
from mmengine.runner import load_checkpoint
from official_keys import meta_state_dict
from small_checkpoints import (
    FAMILIES,
    build,
    tiny_state_dict,
)

from inline_mm import __version__
from inline_mm.checkpoint import (
    CheckpointError,
    InLinePretrained,
    convert_file,
    convert_official,
)
from inline_mm.checkpoint.convert import translate
from inline_mm.checkpoint.integrity import hash_tensors
from inline_mm.checkpoint.writing import _file_name


@pytest.mark.parametrize('suffix', ['.pth', '.safetensors'])
@pytest.mark.parametrize('family', FAMILIES)
def test_converted_file_fills_a_backbone(family, suffix, official, tmp_path):
    source = official(family)
    result = convert_file(source, tmp_path, suffix=suffix)
    digest = hashlib.sha256(result.path.read_bytes()).hexdigest()
    assert re.fullmatch(
        rf'inline-{family}-custom_3rdparty_in1k_\d{{8}}-{digest[:8]}{suffix}',
        result.path.name,
    )
    assert result.key == 'model'
    assert result.dropped == ('head',)
    expected = convert_official(tiny_state_dict(family))
    backbone = build(family)
    InLinePretrained(result.path)(backbone)
    state = backbone.state_dict()
    assert all(torch.equal(state[key], expected[key]) for key in expected)


@pytest.mark.parametrize(
    ('model', 'name', 'variant'),
    [
        ('deit_t', 'inline-deit-tiny', 'InLine-DeiT tiny'),
        ('swin_b_384', 'inline-swin-base-384', 'InLine-Swin base-384'),
        # Nothing in the file tells the two: it is named by both.
        ('cswin_b', 'inline-cswin-base-or-base-384', None),
        ('cswin_b_384', 'inline-cswin-base-or-base-384', None),
    ],
)
def test_published_variants_are_named(model, name, variant):
    # The names follow the widths, which small tensors don't have.
    result = translate(meta_state_dict(model))
    path = _file_name(result, False, b'', '.pth')
    assert path.startswith(f'{name}_3rdparty_in1k_')
    assert result.variant == (variant or 'InLine-CSwin base or base-384')


@pytest.mark.parametrize('family', FAMILIES)
def test_stock_loaders_take_converted_files(family, official, tmp_path):
    result = convert_file(official(family), tmp_path / 'a.pth', keep_head=True)
    content = torch.load(result.path, weights_only=True)
    assert content['meta'] == dict(
        converter=f'inline_mm {__version__}',
        source=f'{family}.pth',
        source_sha256=hashlib.sha256(
            official(family).read_bytes()
        ).hexdigest(),
        key='model',
        variant=result.variant,
        tensors_sha256=hash_tensors(content['state_dict']),
    )
    model = torch.nn.Module()
    model.backbone = (
        build(family, out_indices=3) if family != 'deit' else (build(family))
    )
    channels = content['state_dict']['head.fc.weight'].shape[1]
    model.head = torch.nn.Module()
    model.head.fc = torch.nn.Linear(channels, 1000)
    load_checkpoint(model, str(result.path), strict=True)
    assert torch.equal(
        model.head.fc.bias, tiny_state_dict(family)['head.bias']
    )


def test_only_the_tensors_are_stored(official, tmp_path):
    whole = torch.zeros(1_000_000)
    tensors = tiny_state_dict('deit')
    tensors['cls_token'] = whole[:24].reshape(1, 1, 24)
    source = tmp_path / 'views.pth'
    torch.save(tensors, source)
    result = convert_file(source, tmp_path / 'a.pth')
    assert result.path.stat().st_size < source.stat().st_size - 3_900_000


@pytest.mark.parametrize('suffix', ['.pth', '.safetensors'])
@pytest.mark.parametrize('family', FAMILIES)
def test_trained_detectors_back_to_official_names(family, suffix, tmp_path):
    official = tiny_state_dict(family, head=False)
    backbone = build(family)
    backbone.load_state_dict(convert_official(official), strict=False)
    state = {f'backbone.{k}': v for k, v in backbone.state_dict().items()}
    state['bbox_head.cls.weight'] = torch.ones(3)
    source = tmp_path / 'epoch_12.pth'
    torch.save({'state_dict': state, 'meta': {'epoch': 12}}, source)
    result = convert_file(source, tmp_path / f'back{suffix}', official=True)
    assert result.dropped == ('bbox_head',)
    if suffix == '.pth':
        back = torch.load(result.path, weights_only=True)['model']
    else:
        from safetensors.torch import load_file

        back = load_file(result.path)
    assert back.keys() == official.keys()
    assert all(torch.equal(back[key], official[key]) for key in official)


def test_backbones_of_trained_models_are_no_third_party_files(tmp_path):
    source = tmp_path / 'epoch_1.pth'
    torch.save({'state_dict': build('pvt').state_dict()}, source)
    result = convert_file(source, tmp_path)
    assert result.path.name.startswith('inline-pvt-custom_backbone_')


def test_converting_twice_is_refused(official, tmp_path):
    for name in ('a.pth', 'a.safetensors'):
        first = convert_file(official('deit'), tmp_path / name).path
        with pytest.raises(CheckpointError, match='converted already'):
            convert_file(first, tmp_path / 'b.pth')
        assert not (tmp_path / 'b.pth').exists()
    with pytest.raises(CheckpointError, match='official names already'):
        convert_file(official('deit'), tmp_path / 'b.pth', official=True)

"""Wrappers and prefixes: where the backbone is inside a file."""

import pytest
import torch
from small_checkpoints import FAMILIES, build, tiny_state_dict

from inline_mm.checkpoint import (
    CheckpointError,
    InLinePretrained,
    convert_official,
)
from inline_mm.checkpoint.source import open_source

HEADS = {
    'neck.lateral_convs.0.conv.weight': torch.ones(2, 2, 1, 1),
    'rpn_head.rpn_cls.weight': torch.ones(3, 2, 1, 1),
    'roi_head.bbox_head.fc_cls.weight': torch.ones(81, 4),
}


def prefixed(prefix, tensors):
    return {prefix + key: tensor for key, tensor in tensors.items()}


def save(tmp_path, content):
    path = tmp_path / 'file.pth'
    torch.save(content, path)
    return path


@pytest.mark.parametrize(
    'prefix',
    [
        '',
        'module.',
        'backbone.',
        'module.backbone.',
        'ema_',
        'ema_backbone.',
        'module.ema_backbone.',
        'model.backbone.',
        '_orig_mod.',
        'backbone._orig_mod.',
    ],
)
@pytest.mark.parametrize(
    'wrapper', [None, 'state_dict', 'model', 'model_ema', 'state_dict_ema']
)
@pytest.mark.parametrize('form', ['official', 'ours'])
def test_prefixes_and_wrappers(form, wrapper, prefix, tmp_path):
    tensors = tiny_state_dict('deit', head=False)
    ours = convert_official(tensors)
    content = prefixed(prefix, ours if form == 'ours' else tensors)
    if wrapper:
        content = {wrapper: content, 'epoch': 3}
    source = open_source(save(tmp_path, content))
    assert source.key == wrapper
    assert source.dropped == []
    found = source.translate().tensors
    assert found.keys() == ours.keys()
    assert all(torch.equal(found[key], ours[key]) for key in ours)


@pytest.mark.parametrize('family', FAMILIES)
@pytest.mark.parametrize('prefix', ['', 'module.'])
def test_whole_detectors_lose_their_heads(prefix, family, tmp_path):
    ours = convert_official(tiny_state_dict(family))
    norms = {}
    if family in ('swin', 'cswin'):
        for index in range(3):
            key = f'stages.{index}.blocks.0.norm1.weight'
            for leaf in ('weight', 'bias'):
                norms[f'norm{index}.{leaf}'] = 2 * ours[key]
    model = {**prefixed('backbone.', {**ours, **norms}), **HEADS}
    content = {'state_dict': prefixed(prefix, model), 'meta': {'epoch': 12}}
    path = save(tmp_path, content)
    assert open_source(path).dropped == ['neck', 'roi_head', 'rpn_head']
    backbone = build(family)
    InLinePretrained(path)(backbone)
    state = backbone.state_dict()
    expected = {**ours, **norms}
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[key], expected[key]) for key in state)


def test_classifier_of_mmpretrain(tmp_path):
    ours = convert_official(tiny_state_dict('swin'), keep_head=True)
    content = {
        key if key.startswith('head.') else f'backbone.{key}': tensor
        for key, tensor in ours.items()
    }
    source = open_source(save(tmp_path, {'state_dict': content}))
    result = source.translate()
    assert set(result.head) == {'head.fc.weight', 'head.fc.bias'}
    assert {**result.tensors, **result.head}.keys() == ours.keys()


def test_cswin_takes_the_averaged_weights_unless_told(tmp_path):
    raw = tiny_state_dict('cswin')
    averaged = {key: tensor + 1 for key, tensor in raw.items()}
    path = save(tmp_path, {'model': raw, 'state_dict_ema': averaged})
    source = open_source(path)
    assert source.key == 'state_dict_ema'
    assert source.others == ['model']
    assert torch.equal(source.tensors['norm.bias'], averaged['norm.bias'])
    source = open_source(path, key='model')
    assert source.key == 'model'
    assert torch.equal(source.tensors['norm.bias'], raw['norm.bias'])


def test_the_choice_reaches_the_model(tmp_path):
    raw = tiny_state_dict('cswin')
    averaged = {key: tensor + 1 for key, tensor in raw.items()}
    path = save(tmp_path, {'model': raw, 'state_dict_ema': averaged})
    backbone = build('cswin')
    InLinePretrained(path)(backbone)
    assert torch.equal(backbone.norm3.bias, averaged['norm.bias'])
    assert backbone.init_info['key'] == 'state_dict_ema'
    InLinePretrained(path, key='model')(backbone)
    assert torch.equal(backbone.norm3.bias, raw['norm.bias'])


def test_averaged_copies_beside_plain_tensors_are_left_out(tmp_path):
    tensors = prefixed('backbone.', tiny_state_dict('pvt', head=False))
    copies = {
        'ema_' + key.replace('.', '_'): tensor + 1
        for key, tensor in tensors.items()
    }
    source = open_source(save(tmp_path, {'state_dict': tensors | copies}))
    assert source.dropped == ['ema_*']
    key = 'patch_embed1.proj.bias'
    assert torch.equal(source.tensors[key], tensors[f'backbone.{key}'])


def test_averaged_weights_of_mmengine_on_request(tmp_path):
    tensors = tiny_state_dict('deit')
    averaged = prefixed('module.backbone.', tensors)
    averaged['steps'] = torch.tensor(7)
    content = {
        'state_dict': prefixed('backbone.', tensors),
        'ema_state_dict': averaged,
    }
    source = open_source(save(tmp_path, content), key='ema_state_dict')
    assert source.translate().unknown == []
    assert source.dropped == ['steps']


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ([torch.zeros(2)], 'holds a list, expected a dict of tensors'),
        ({}, 'holds no weights; it is empty'),
        ({'epoch': 3, 'optimizer': {}}, 'its entries are epoch, optimizer'),
        ({'conv.weight': torch.zeros(2)}, 'no tensor of an InLine backbone'),
        ({'state_dict': {'a.b': torch.zeros(2)}}, 'no tensor of an InLine'),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_files_without_a_backbone(content, message, tmp_path):
    path = save(tmp_path, content)
    with pytest.raises(CheckpointError, match=message) as caught:
        open_source(path)
    assert str(path) in str(caught.value)
    assert '\n' not in str(caught.value)


def test_a_wrong_entry_lists_those_that_work(tmp_path):
    content = {'model': tiny_state_dict('deit'), 'epoch': 1}
    path = save(tmp_path, content)
    for key in ('ema', 'epoch'):
        with pytest.raises(CheckpointError, match="take 'model'"):
            open_source(path, key=key)


def test_several_backbones_are_not_guessed(tmp_path):
    tensors = tiny_state_dict('deit')
    content = {
        **prefixed('student.backbone.', tensors),
        **prefixed('teacher.backbone.', tensors),
    }
    with pytest.raises(CheckpointError, match=r'student\.backbone\., teacher'):
        open_source(save(tmp_path, {'state_dict': content}))


def test_the_same_tensor_twice_is_not_guessed(tmp_path):
    tensors = tiny_state_dict('deit')
    content = {**tensors, **prefixed('module.', tensors)}
    with pytest.raises(CheckpointError, match='twice'):
        open_source(save(tmp_path, content))


def test_parameters_that_require_gradients(tmp_path):
    tensors = {
        key: torch.nn.Parameter(tensor)
        for key, tensor in tiny_state_dict('deit').items()
    }
    source = open_source(save(tmp_path, tensors))
    assert not any(t.requires_grad for t in source.tensors.values())

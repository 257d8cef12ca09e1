"""InLinePretrained: the right weights in a backbone, and what it says."""

import pytest
import torch
from mmengine.model import BaseModule
from mmengine.registry import DefaultScope
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
    convert_official,
    describe_init,
)


@pytest.mark.parametrize('scope', [None, 'mmdet', 'mmseg', 'mmpretrain'])
@pytest.mark.parametrize('family', FAMILIES)
def test_official_file_fills_a_backbone(family, scope, official, log):
    path = official(family)
    if scope is None:
        backbone = load(build(family), path)
    else:
        with DefaultScope.overwrite_default_scope(scope):
            backbone = load(build(family), path)
    expected = convert_official(tiny_state_dict(family))
    state = backbone.state_dict()
    for key, tensor in expected.items():
        assert torch.equal(state[key], tensor), key
    new = set(state) - set(expected)
    for key in new:
        assert key.startswith(('norm0.', 'norm1.', 'norm2.'))
        assert (state[key] == float(key.endswith('weight'))).all()
    assert backbone.init_info['matched'] == len(expected)
    assert backbone.init_info['total'] == len(expected)
    message = log()[0]
    count = len(expected)
    assert f'matched {count} of {count} backbone tensors' in message
    assert 'loaded InLine-' in message and "entry 'model'" in message
    assert message.count('left out: head') == 1
    assert ('new for dense tasks: norm0, norm1, norm2' in message) == bool(new)


def test_the_log_names_the_entry_and_what_else_there_was(tmp_path, log):
    tensors = tiny_state_dict('cswin')
    path = tmp_path / 'file.pth'
    torch.save({'model': tensors, 'state_dict_ema': tensors}, path)
    load(build('cswin'), path)
    assert "entry 'state_dict_ema', not 'model'" in log()[0]


def test_description_names_file_hash_and_share(official):
    backbone = build('pvt')
    assert describe_init(backbone) == 'random'
    load(backbone, official('pvt'))
    info = backbone.init_info
    text = describe_init(backbone)
    assert info['source'] in text and info['sha256'][:8] in text
    assert f'matched {info["total"]} of {info["total"]}' in text
    assert len(info['sha256']) == 64


def test_children_that_initialise_themselves_come_first(official):
    class Eager(BaseModule):
        def init_weights(self):
            with torch.no_grad():
                for parameter in backbone.parameters():
                    parameter.fill_(7.0)

    backbone = build('swin')
    backbone.eager = Eager()
    load(backbone, official('swin'))
    assert not any((p == 7.0).all() for p in backbone.parameters())


@pytest.mark.parametrize('family', ['pvt', 'swin', 'cswin'])
@pytest.mark.parametrize('out_indices', [(0,), (0, 1), (1, 3), (3,)], ids=str)
def test_fewer_outputs_need_fewer_tensors(family, out_indices, official):
    backbone = load(build(family, out_indices=out_indices), official(family))
    expected = convert_official(tiny_state_dict(family))
    for key, tensor in backbone.state_dict().items():
        if key in expected:
            assert torch.equal(tensor, expected[key])
        else:
            assert key.startswith('norm')


def test_fewer_blocks_of_deit(official):
    path = official('deit')
    load(build('deit', out_indices=0), path)
    arch = {**tiny_arch('deit'), 'depth': 1}
    with pytest.raises(CheckpointError, match=r'not in the model: blocks\.1'):
        load(build('deit', arch=arch), path)


def test_half_precision_weights_are_cast(tmp_path):
    tensors = {k: v.half() for k, v in tiny_state_dict('deit').items()}
    torch.save(tensors, tmp_path / 'half.pth')
    backbone = load(
        build('deit', pretrain_img_size=288), tmp_path / 'half.pth'
    )
    assert all(p.dtype == torch.float32 for p in backbone.parameters())


def test_ablations_load_their_own_checkpoints(tmp_path):
    path = tmp_path / 'file.pth'
    for options in (
        dict(local_residual=False),
        dict(kernel='affine_relu'),
        dict(local_residual=False, out_indices=(0, 1)),
    ):
        for family in ('pvt', 'swin', 'cswin'):
            trained = build(family, **options)
            torch.save({'state_dict': trained.state_dict()}, path)
            backbone = build(family, **options)
            InLinePretrained(path)(backbone)
            for key, tensor in trained.state_dict().items():
                assert torch.equal(backbone.state_dict()[key], tensor)

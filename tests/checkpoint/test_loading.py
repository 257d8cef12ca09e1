"""InLinePretrained: the right weights in a backbone, or one sentence."""

import itertools
import logging

import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseModule
from mmengine.registry import MODELS, DefaultScope
from small_checkpoints import (
    FAMILIES,
    build,
    tiny_arch,
    tiny_state_dict,
)
from torch.nn import functional as F

from inline_mm.checkpoint import (
    CheckpointError,
    InLinePretrained,
    convert_official,
    describe_init,
)


@pytest.fixture(autouse=True)
def log():
    """The messages of the initialiser in mmengine's log."""
    logger = MMLogger.get_current_instance()
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record)
    logger.addHandler(handler)
    yield lambda: [
        record.getMessage()
        for record in records
        if 'backbone tensors' in record.getMessage()
    ]
    logger.removeHandler(handler)


@pytest.fixture
def official(tmp_path):
    """Writes the official file of a family, returns its path."""

    def write(family, **changes):
        path = tmp_path / f'{family}.pth'
        tensors = tiny_state_dict(family)
        tensors.update(changes)
        torch.save({'model': tensors, 'epoch': 300}, path)
        return str(path)

    return write


def load(backbone, path, **options):
    """Initialise as a run does, through init_cfg."""
    backbone.init_cfg = dict(
        type='InLinePretrained', checkpoint=path, **options
    )
    backbone.init_weights()
    return backbone


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


@pytest.mark.parametrize('family', ['pvt', 'swin', 'cswin'])
def test_unused_stages_must_be_whole(family, tmp_path):
    tensors = tiny_state_dict(family)
    lost = next(k for k in reversed(tensors) if 'norm1.weight' in k)
    del tensors[lost]
    torch.save(tensors, tmp_path / 'cut.pth')
    backbone = build(family, out_indices=(0,))
    with pytest.raises(CheckpointError, match=r'not in the file: stages\.3'):
        load(backbone, tmp_path / 'cut.pth')


@pytest.mark.parametrize(
    ('given', 'wanted'), itertools.permutations(FAMILIES, 2)
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


@pytest.mark.parametrize('window', [7, 12])
def test_bias_tables_follow_the_window(window, official, log):
    arch = {**tiny_arch('swin'), 'softmax_window': window}
    backbone = load(build('swin', arch=arch), official('swin'))
    name = 'blocks.1.attn.relative_position_bias_table'
    table = tiny_state_dict('swin')[f'layers.3.{name}']
    side = 2 * window - 1
    expected = F.interpolate(
        table.T.reshape(1, -1, 13, 13), (side, side), mode='bicubic'
    )
    got = backbone.state_dict()[f'stages.3.{name}']
    if window == 7:
        assert torch.equal(got, table)
        assert 'resized' not in log()[0]
    else:
        torch.testing.assert_close(got, expected.reshape(-1, side**2).T)
        note = '2 x relative_position_bias_table 13x13 to 23x23 (bicubic)'
        assert log()[0].count(note) == 1


def test_pvt_tables_of_another_pretraining_size_are_resized(official, log):
    backbone = load(build('pvt', pretrain_img_size=256), official('pvt'))
    table = tiny_state_dict('pvt')['pos_embed3']
    expected = F.interpolate(
        table.reshape(1, 14, 14, -1).permute(0, 3, 1, 2),
        (16, 16),
        mode='bilinear',
    )
    got = backbone.state_dict()['stages.2.pos_embed']
    torch.testing.assert_close(got, expected.flatten(2).transpose(1, 2))
    assert 'pos_embed 14x14 to 16x16 (bilinear)' in log()[0]


def test_deit_table_keeps_its_class_token(official, log):
    backbone = load(build('deit', pretrain_img_size=288), official('deit'))
    table = tiny_state_dict('deit')['pos_embed']
    got = backbone.state_dict()['pos_embed']
    assert got.shape[1] == 1 + 18**2
    assert torch.equal(got[:, 0], table[:, 0])
    expected = F.interpolate(
        table[:, 1:].reshape(1, 14, 14, -1).permute(0, 3, 1, 2),
        (18, 18),
        mode='bicubic',
    )
    torch.testing.assert_close(got[:, 1:], expected.flatten(2).transpose(1, 2))
    assert 'pos_embed 14x14 to 18x18 (bicubic)' in log()[0]


def test_a_class_token_in_a_pvt_table_is_no_grid(official):
    path = official('pvt', pos_embed4=torch.zeros(1, 50, 64))
    with pytest.raises(CheckpointError, match=r'is \(1, 50, 64\) in the file'):
        load(build('pvt'), path)


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_weights_that_are_no_numbers_are_refused(value, official):
    path = official('deit', cls_token=torch.full((1, 1, 24), value))
    with pytest.raises(CheckpointError, match=r'NaN or infinite.*cls_token'):
        load(build('deit'), path)


@pytest.mark.parametrize('family', FAMILIES)
def test_any_key_of_ours_that_is_lost_or_renamed_stops(family, tmp_path):
    ours = convert_official(tiny_state_dict(family))
    backbone = build(family)
    path = tmp_path / 'ours.pth'
    # One key of each kind; the table and the model treat the others alike.
    kinds = {''.join(c for c in k if not c.isdigit()): k for k in ours}
    for key in kinds.values():
        cut = {k: v for k, v in ours.items() if k != key}
        for changed in (cut, {**cut, f'x{key}': ours[key]}):
            torch.save(changed, path)
            with pytest.raises(CheckpointError) as caught:
                InLinePretrained(path)(backbone)
            assert f'not in the file: {key}' in str(caught.value)


def test_half_an_output_norm_is_an_error(tmp_path):
    ours = convert_official(tiny_state_dict('swin'))
    torch.save({**ours, 'norm0.weight': torch.ones(12)}, tmp_path / 'a.pth')
    with pytest.raises(CheckpointError, match=r'not in the file: norm0\.bias'):
        load(build('swin'), tmp_path / 'a.pth')
    with pytest.raises(CheckpointError, match=r'not in the file: norm0\.bias'):
        load(build('swin', out_indices=(3,)), tmp_path / 'a.pth')


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


def test_half_precision_weights_are_cast(tmp_path):
    tensors = {k: v.half() for k, v in tiny_state_dict('deit').items()}
    torch.save(tensors, tmp_path / 'half.pth')
    backbone = load(
        build('deit', pretrain_img_size=288), tmp_path / 'half.pth'
    )
    assert all(p.dtype == torch.float32 for p in backbone.parameters())


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


@pytest.mark.parametrize('checkpoint', [None, 3, ['a.pth']])
def test_a_checkpoint_must_be_named(checkpoint):
    with pytest.raises(TypeError, match='must be a path, a URL'):
        InLinePretrained(checkpoint)

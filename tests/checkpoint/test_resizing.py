"""InLinePretrained: position tables of another size."""

import pytest
import torch
from small_checkpoints import build, load, tiny_arch, tiny_state_dict
from torch.nn import functional as F

from inline_mm.checkpoint import CheckpointError


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

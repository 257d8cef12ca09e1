"""Weights of InLine models and models with another linear attention."""

import pytest
import torch
from small_checkpoints import build, load

from inline_mm.checkpoint import CheckpointError
from inline_mm.layers import LINEAR_ATTENTIONS

ATTENTIONS = pytest.mark.parametrize('attention', LINEAR_ATTENTIONS)
FAMILIES = pytest.mark.parametrize('family', ['deit', 'swin'])


@ATTENTIONS
@FAMILIES
def test_official_weights_are_refused_with_what_differs(
    family, attention, official
):
    backbone = build(family, attention=attention)
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    with pytest.raises(CheckpointError) as caught:
        load(backbone, official(family))
    message = str(caught.value)
    block = 'blocks.0' if family == 'deit' else 'stages.0.blocks.0'
    blocks = 2 if family == 'deit' else 6
    needs = {'angular': 2, 'focused': 2}.get(attention, 0) * blocks
    assert f'{4 * blocks} not in the model: {block}.attn.kernel' in message
    assert (f'{needs} not in the file: {block}.attn.' in message) == (
        needs > 0
    )
    for key, tensor in backbone.state_dict().items():
        assert torch.equal(tensor, before[key]), 'changed though refused'


@FAMILIES
def test_allow_partial_takes_the_rest_and_says_so(family, official, log):
    path = official(family)
    backbone = load(
        build(family, attention='focused'), path, allow_partial=True
    )
    info = backbone.init_info
    own = [k for k in backbone.state_dict() if 'attn.depthwise' in k]
    assert own and info['matched'] == info['total'] - len(own)
    message = log()[-1]
    assert f'matched {info["matched"]} of {info["total"]}' in message
    assert 'NOT in the file, initialised anew: ' in message
    assert 'NOT in the model: ' in message
    assert 'loaded' not in message


@ATTENTIONS
@FAMILIES
def test_trained_weights_load_into_the_same_attention(
    family, attention, tmp_path
):
    trained = build(family, attention=attention)
    path = tmp_path / 'epoch_1.pth'
    torch.save({'state_dict': trained.state_dict()}, path)
    backbone = load(build(family, attention=attention), path)
    assert backbone.init_info['matched'] == backbone.init_info['total']
    for key, tensor in trained.state_dict().items():
        assert torch.equal(backbone.state_dict()[key], tensor)
    with pytest.raises(CheckpointError, match='not in the file: '):
        load(build(family), path)

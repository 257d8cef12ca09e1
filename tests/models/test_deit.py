"""InLine-DeiT: its class token, its position table, its block indices.

What all backbones promise is in test_contract.py.
"""

import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS
from torch.nn import functional as F

import inline_mm  # noqa: F401


def build(**options):
    torch.manual_seed(0)
    model = MODELS.build(
        dict(type='InLineDeiT', arch=ARCHS['InLineDeiT'], **options)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def image(height=64, width=96, batch=2):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, height, width, generator=generator)


def backward(outputs):
    sum((out * out).mean() for out in outputs).backward()


def test_the_class_token_trains_every_parameter():
    model = build(out_type='cls_token')
    (out,) = model(image(33, 97))
    assert out.shape == (2, 32)
    backward([out])
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name


@pytest.mark.parametrize('out_indices', [None, 1, (0, 2)])
def test_later_blocks_are_not_built(out_indices):
    model = build(out_indices=out_indices)
    wanted = {None: (3,), 1: (1,)}.get(out_indices, out_indices)
    assert model.out_indices == wanted
    assert model.num_features == [32] * len(wanted)
    assert len(model.blocks) == wanted[-1] + 1


def test_outputs_are_the_normalised_tokens():
    """The map leaves the class token out; the class token is the first."""
    model = build().eval()
    seen = []
    model.norm.register_forward_hook(lambda *args: seen.append(args[-1]))
    (featmap,) = model(image(32, 64))
    model.out_type = 'cls_token'
    (cls_token,) = model(image(32, 64))
    tokens = seen[0]
    assert tokens.shape == (2, 1 + 2 * 4, 32)
    assert torch.equal(featmap.flatten(2).transpose(1, 2), tokens[:, 1:])
    assert torch.equal(cls_token, seen[1][:, 0])


def test_position_table_is_resized_and_its_class_entry_kept():
    """Also where the token count is that of the table (2 x 8 and 4 x 4)."""
    model = build().eval()
    entering = []
    model.blocks[0].register_forward_pre_hook(
        lambda _, args: entering.append(args[0])
    )
    for height, width in ((64, 64), (32, 128), (80, 48)):
        entering.clear()
        model(image(height, width))
        patches = model.patch_embed.projection(image(height, width))
        cls_entry, table = model.pos_embed.split([1, 16], dim=1)
        grid = F.interpolate(
            table.transpose(1, 2).reshape(1, 32, 4, 4),
            (height // 16, width // 16),
            mode='bicubic',
        )
        want = torch.cat(
            [
                (model.cls_token + cls_entry).expand(2, -1, -1),
                (patches + grid).flatten(2).transpose(1, 2),
            ],
            dim=1,
        )
        torch.testing.assert_close(entering[0], want)
    assert model.pos_embed.shape == (1, 17, 32)


def test_an_unknown_output_is_refused():
    with pytest.raises(ValueError, match="'featmap', 'cls_token', got 'raw'"):
        build(out_type='raw')


def test_plain_deit_is_two_switches():
    """Softmax attention without local residual, against torch's own."""
    model = build(normalization='softmax', local_residual=False).eval()
    attention = model.blocks[0].attn
    x = torch.randn(2, 13, 32)
    state = attention.state_dict()
    want, _ = F.multi_head_attention_forward(
        *(x.transpose(0, 1),) * 3,
        32,
        4,
        state['qkv.weight'],
        state['qkv.bias'],
        None,
        None,
        False,
        0.0,
        state['proj.weight'],
        state['proj.bias'],
        need_weights=False,
    )
    torch.testing.assert_close(attention(x, (3, 4)), want.transpose(0, 1))

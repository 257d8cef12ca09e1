"""InLine-DeiT: one stride, a class token, and what both bring with them."""

import copy
import pickle
import warnings

import pytest
import torch
from mmengine.registry import MODELS
from torch.nn import functional as F

from inline_mm.models import InLineDeiT

SMALL = dict(embed_dims=32, depth=4, num_heads=4, pretrain_img_size=64)


def build(**options):
    torch.manual_seed(0)
    model = MODELS.build(dict(type='InLineDeiT', arch=SMALL, **options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def image(height=64, width=96, batch=2):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, height, width, generator=generator)


def backward(outputs):
    sum((out * out).mean() for out in outputs).backward()


@pytest.mark.parametrize('out_type', ['featmap', 'cls_token'])
@pytest.mark.parametrize(
    'size', [(16, 16), (32, 32), (33, 97), (64, 224), (223, 225)], ids=str
)
def test_any_size_runs_and_reaches_every_parameter(size, out_type):
    model = build(out_type=out_type)
    (out,) = model(image(*size))
    grid = tuple(-(-side // 16) for side in size)
    assert out.shape == ((2, 32, *grid) if out_type == 'featmap' else (2, 32))
    assert out.isfinite().all()
    backward([out])
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name


@pytest.mark.parametrize('out_indices', [None, 3, 1, (0, 2), (0, 1, 2, 3)])
def test_out_indices_count_blocks(out_indices):
    everything = build(out_indices=(0, 1, 2, 3)).eval()
    model = build(out_indices=out_indices)
    model.load_state_dict(everything.state_dict(), strict=False)
    wanted = {None: (3,), 3: (3,), 1: (1,)}.get(out_indices, out_indices)
    assert model.out_indices == wanted
    assert model.num_features == [32] * len(wanted)
    assert len(model.blocks) == wanted[-1] + 1
    outputs, references = model.eval()(image()), everything(image())
    for out, index in zip(outputs, wanted, strict=True):
        torch.testing.assert_close(out, references[index])
    backward(outputs)
    assert all(p.grad is not None for p in model.parameters())


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


@pytest.mark.parametrize(
    ('option', 'value', 'expected'),
    [
        ('out_indices', (4,), '0 to 3'),
        ('out_indices', -1, '0 to 3'),
        ('out_type', 'raw', "'featmap'"),
        ('arch', 'large', "'tiny'"),
        ('frozen_stages', 5, 'to 4'),
        ('drop_rate', 1.0, '[0, 1)'),
    ],
)
def test_mistakes_are_refused_with_what_is_expected(option, value, expected):
    config = dict(type='InLineDeiT', arch=SMALL) | {option: value}
    with pytest.raises(ValueError) as error:
        MODELS.build(config)
    assert option in str(error.value)
    assert expected in str(error.value)
    assert str(value) in str(error.value)


def test_too_small_images_are_refused():
    with pytest.raises(ValueError, match=r'at least 16.*\(15, 64\)'):
        build()(image(15, 64))


def test_batch_of_two_equals_each_alone():
    model = build().double().eval()
    x = image().double()
    (together,) = model(x)
    for index in range(2):
        (alone,) = model(x[index : index + 1])
        torch.testing.assert_close(
            together[index : index + 1], alone, rtol=0, atol=1e-10
        )


def test_checkpointing_changes_neither_outputs_nor_gradients():
    results = []
    for with_cp in (False, True):
        model = build(with_cp=with_cp, drop_rate=0.1, drop_path_rate=0.5)
        model.double()
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            outputs = model(image().double())
            backward(outputs)
        results.append([*outputs, *(p.grad for p in model.parameters())])
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize('frozen_stages', [-1, 0, 2, 4])
def test_frozen_parts_stay_bit_for_bit(frozen_stages):
    model = build(frozen_stages=frozen_stages, drop_rate=0.1)
    assert model.train() is model
    x = image().requires_grad_()
    before = copy.deepcopy(model.state_dict())
    backward(model(x))
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.data -= 0.1 * parameter.grad
    prefixes = [f'blocks.{index}.' for index in range(frozen_stages)]
    if frozen_stages >= 0:
        prefixes += ['patch_embed', 'cls_token', 'pos_embed']
    if frozen_stages == 4:
        prefixes.append('norm.')
    for key, value in model.state_dict().items():
        frozen = key.startswith(tuple(prefixes))
        assert torch.equal(value, before[key]) == frozen, key
    assert model.patch_embed.training == (frozen_stages < 0)
    assert model.drop.training == (frozen_stages < 0)
    for index, block in enumerate(model.blocks):
        assert block.training == (index >= frozen_stages)
    assert x.grad.abs().sum() > 0


def test_everyday_life_of_a_module():
    model = build()
    assert model.eval() is model
    (want,) = model(image())
    assert want.is_contiguous()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(image())[0], want)
    fresh = InLineDeiT(SMALL).eval()
    fresh.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(fresh(image())[0], want)
    with torch.device('meta'):
        meta = InLineDeiT(SMALL)
    assert all(p.is_meta for p in meta.parameters())


def test_random_start_is_usable():
    outputs = []
    for _ in range(2):
        torch.manual_seed(0)
        model = InLineDeiT(SMALL)
        model.init_weights()
        outputs.append(model.eval()(image())[0])
    assert torch.equal(*outputs)
    assert outputs[0].isfinite().all()
    assert outputs[0].std() > 0


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

"""What every backbone promises, over all families (docs/design.md, 3.5)."""

import copy
import pickle
import warnings

import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS, HIERARCHICAL, output_grids

import inline_mm  # noqa: F401

SIZES = [(32, 32), (33, 97), (64, 224), (96, 130), (61, 127)]
SUBSETS = [(0, 1, 2, 3), (1, 3), (0, 2), 0, 2, 3]


def build(name, **options):
    torch.manual_seed(0)
    options = dict(arch=ARCHS[name], **options)
    model = MODELS.build(dict(type=name, **options))
    # Bias tables and output norms away from their flat start.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def image(height=64, width=96, batch=2):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, height, width, generator=generator)


def backward(outputs):
    sum((out * out).mean() for out in outputs).backward()


@pytest.mark.parametrize('size', SIZES, ids=str)
@pytest.mark.parametrize('name', ARCHS)
def test_output_strides_and_channels(name, size):
    model = build(name)
    outputs = model(image(*size))
    grids = output_grids(name, size)
    for out, channels, grid in zip(
        outputs, model.num_features, grids, strict=True
    ):
        assert out.shape == (2, channels, *grid)
        assert torch.isfinite(out).all()
    backward(outputs)
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize('out_indices', SUBSETS, ids=str)
@pytest.mark.parametrize('name', ARCHS)
def test_out_indices_select_and_leave_no_parameter_without_gradient(
    name, out_indices
):
    """Stages of the hierarchical backbones, blocks of DeiT."""
    everything = build(name, out_indices=(0, 1, 2, 3)).eval()
    model = build(name, out_indices=out_indices)
    model.load_state_dict(everything.state_dict(), strict=False)
    outputs = model.eval()(image())
    wanted = (out_indices,) if isinstance(out_indices, int) else out_indices
    assert model.out_indices == wanted
    all_outputs = everything(image())
    for out, index in zip(outputs, wanted, strict=True):
        torch.testing.assert_close(out, all_outputs[index])
    backward(outputs)
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize('name', ARCHS)
@pytest.mark.parametrize(
    ('option', 'value', 'expected'),
    [
        ('out_indices', (4,), '0 to 3'),
        ('out_indices', (2, 1), 'increasing'),
        ('out_indices', -1, '0 to 3'),
        ('out_indices', (), 'increasing'),
        ('arch', 'huge', "'tiny'"),
        ('arch', dict(depths=(1, 1, 1, 1)), 'missing'),
        ('pretrain_img_size', 0, 'at least'),
        ('frozen_stages', 5, '-1'),
        ('drop_rate', 1.0, '[0, 1)'),
        ('drop_path_rate', 1.5, '[0, 1)'),
        ('kernel', 'gelu', "'identity'"),
        ('normalization', 'l2', "'subtract'"),
    ],
)
def test_mistakes_are_refused_with_what_is_expected(
    name, option, value, expected
):
    config = dict(type=name, arch=ARCHS[name]) | {option: value}
    with pytest.raises(ValueError) as error:
        MODELS.build(config)
    assert option in str(error.value)
    assert expected in str(error.value)
    assert str(value) in str(error.value) or option == 'arch'


@pytest.mark.parametrize('name', HIERARCHICAL)
def test_a_window_without_tokens_is_refused(name):
    with pytest.raises(ValueError, match=r'None \(global\).* got 0'):
        build(name, window_size=0)


@pytest.mark.parametrize('name', ARCHS)
def test_unknown_arguments_are_refused_by_name(name):
    """Keys left over from another backbone in a config aren't swallowed."""
    with pytest.raises(TypeError, match='norm_cfg'):
        MODELS.build(dict(type=name, norm_cfg=dict(type='BN')))


@pytest.mark.parametrize('name', ARCHS)
def test_too_small_images_are_refused(name):
    least = 16 if name == 'InLineDeiT' else 32
    build(name)(image(least, 64))
    found = rf'at least {least}.*\({least - 1}, 64\)'
    with pytest.raises(ValueError, match=found):
        build(name)(image(least - 1, 64))


@pytest.mark.parametrize('name', ARCHS)
def test_batch_of_two_equals_each_alone(name):
    model = build(name).double().eval()
    x = image().double()
    together = model(x)
    for index in range(2):
        alone = model(x[index : index + 1])
        for left, right in zip(together, alone, strict=True):
            torch.testing.assert_close(
                left[index : index + 1], right, rtol=0, atol=1e-10
            )


@pytest.mark.parametrize('name', ARCHS)
def test_checkpointing_changes_neither_outputs_nor_gradients(name):
    results = []
    for with_cp in (False, True):
        model = build(
            name, with_cp=with_cp, drop_rate=0.1, drop_path_rate=0.5
        ).double()
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            outputs = model(image().double())
            backward(outputs)
        grads = [p.grad for p in model.parameters()]
        results.append([*outputs, *grads])
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


def frozen_prefixes(name, count):
    """Keys of what `frozen_stages` = `count` names."""
    if count < 0:
        return ()
    if name == 'InLineDeiT':
        prefixes = ['patch_embed', 'cls_token', 'pos_embed']
        prefixes += [f'blocks.{index}.' for index in range(count)]
        return (*prefixes, 'norm.') if count == 4 else tuple(prefixes)
    prefixes = ['patch_embed', 'stages.0.pos_embed']
    for index in range(count):
        prefixes += [f'stages.{index}.', f'norm{index}.']
    return tuple(prefixes)


@pytest.mark.parametrize('with_cp', [False, True])
@pytest.mark.parametrize('frozen_stages', [-1, 0, 1, 3, 4])
@pytest.mark.parametrize('name', ARCHS)
def test_frozen_stages_stay_bit_for_bit(name, frozen_stages, with_cp):
    model = build(name, frozen_stages=frozen_stages, with_cp=with_cp)
    assert model.train() is model
    x = image().requires_grad_()
    before = copy.deepcopy(model.state_dict())
    backward(model(x))
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.data -= 0.1 * parameter.grad
    prefixes = frozen_prefixes(name, frozen_stages)
    for key, value in model.state_dict().items():
        # The key part of a qkv bias has no gradient, the others have.
        frozen = key.startswith(prefixes)
        assert torch.equal(value, before[key]) == frozen, key
    is_deit = name == 'InLineDeiT'
    for index, part in enumerate(model.blocks if is_deit else model.stages):
        assert part.training == (index >= frozen_stages)
    drop = model.drop if is_deit else model.stages[0].drop
    assert model.patch_embed.training == (frozen_stages < 0)
    assert drop.training == (frozen_stages < 0)
    # Gradients pass through what is frozen.
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize('name', ARCHS)
def test_everyday_life_of_a_module(name):
    model = build(name)
    assert model.eval() is model
    want = model(image())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for left, right in zip(other(image()), want, strict=True):
            assert torch.equal(left, right)
    fresh = build(name).eval()
    fresh.load_state_dict(model.state_dict(), strict=True)
    for left, right in zip(fresh(image()), want, strict=True):
        assert torch.equal(left, right)
    assert all(out.is_contiguous() for out in want)
    with torch.device('meta'):
        meta = MODELS.build(dict(type=name, arch=ARCHS[name]))
        traced = meta(torch.empty(2, 3, 64, 96))
    assert all(p.is_meta for p in meta.parameters())
    assert [out.shape for out in traced] == [out.shape for out in want]


@pytest.mark.parametrize('name', ARCHS)
def test_random_start_is_usable(name):
    """Without init_cfg: finite, and no two builds with a seed differ."""
    outputs = []
    for _ in range(2):
        torch.manual_seed(0)
        model = MODELS.build(dict(type=name, arch=ARCHS[name]))
        model.init_weights()
        outputs.append(model.eval()(image()))
    for left, right in zip(*outputs, strict=True):
        assert torch.equal(left, right)
        assert torch.isfinite(left).all()
        assert left.std() > 0


@pytest.mark.parametrize('size', [(32, 128), (128, 128), (256, 256)], ids=str)
def test_pvt_takes_sizes_whose_counts_equal_those_of_another_grid(size):
    """8 x 32 tokens in stage 1, or 16 x 16 in stage 2 or 3: the count of the
    16 x 16 table of stage 1, which the official code mistakes for its grid.
    """
    model = build('InLinePVT').eval()
    entering = []
    for stage in model.stages:
        stage.blocks[0].register_forward_pre_hook(
            lambda _, args: entering.append(args[0])
        )
    model(image(*size, batch=1))
    plain = copy.deepcopy(model)
    with torch.no_grad():
        for stage in plain.stages:
            stage.pos_embed.zero_()
    x, hw_shape = plain.patch_embed(image(*size, batch=1))
    table = model.stages[0].pos_embed.reshape(1, 16, 16, -1)
    table = torch.nn.functional.interpolate(
        table.permute(0, 3, 1, 2), hw_shape, mode='bilinear'
    )
    torch.testing.assert_close(
        entering[0], x + table.flatten(2).transpose(1, 2)
    )


def test_window_of_the_whole_map_is_global():
    for name in HIERARCHICAL:
        model = build(name).eval()
        windowed = build(name, window_size=24).eval()
        windowed.load_state_dict(model.state_dict())
        for left, right in zip(model(image()), windowed(image()), strict=True):
            torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)

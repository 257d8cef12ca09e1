"""Official names to ours and back, for all 15 published models."""

import pytest
import torch
from official_keys import OFFICIAL_MODELS, meta_state_dict
from small_checkpoints import (
    CLASSES,
    FAMILIES,
    build,
    small_state_dict,
    tiny_state_dict,
)

from inline_mm.checkpoint import (
    CheckpointError,
    convert_official,
    identify,
    to_official,
)
from inline_mm.layers import PatchMerging

SIZES = {'t': 'tiny', 's': 'small', 'm': 'medium', 'l': 'large', 'b': 'base'}


def split_name(model):
    family, size, *side = model.split('_')
    return family, '-'.join([SIZES[size], *side])


@pytest.mark.parametrize('model', OFFICIAL_MODELS)
def test_official_tensors_fit_our_model_one_to_one(model):
    family, arch = split_name(model)
    with torch.device('meta'):
        backbone = build(family, arch=arch)
    converted = convert_official(meta_state_dict(model))
    shapes = {k: v.shape for k, v in backbone.state_dict().items()}
    new = {f'norm{i}.{p}' for i in range(3) for p in ('weight', 'bias')}
    if family in ('pvt', 'deit'):
        assert not new & set(shapes)
    assert {k: v.shape for k, v in converted.items()} == {
        k: shape for k, shape in shapes.items() if k not in new
    }


@pytest.mark.parametrize('model', OFFICIAL_MODELS)
def test_round_trip_is_bit_equal(model):
    official = small_state_dict(model)
    ours = convert_official(official, keep_head=True)
    back = to_official(ours, keep_head=True)
    assert back.keys() == official.keys()
    for key, tensor in official.items():
        assert back[key].dtype == tensor.dtype, key
        assert torch.equal(back[key], tensor), key


@pytest.mark.parametrize('model', OFFICIAL_MODELS)
def test_variants_are_named(model):
    family, arch = split_name(model)
    if family == 'cswin' and arch.startswith('base'):
        arch = 'base or base-384'
    official = meta_state_dict(model)
    name = f'{CLASSES[family].replace("InLine", "InLine-")} {arch}'
    assert identify(official) == name
    assert identify(convert_official(official)) == name


def test_other_backbones_are_named():
    official = tiny_state_dict('swin')
    assert identify(official) == (
        'InLine-Swin of depths 2, 2, 2, 2 and channels 12, 24, 48, 96'
    )
    plain = {k: v for k, v in official.items() if 'residual' not in k}
    for stage, depth in enumerate((2, 2, 2)):
        for block in range(depth):
            key = (
                f'layers.{stage}.blocks.{block}.attn.'
                'relative_position_bias_table'
            )
            plain[key] = torch.zeros(169, 3)
    assert identify(plain).startswith('Swin of depths')
    assert 'with softmax attention' in identify(plain)


def test_models_of_fewer_stages_are_named_by_all_that_fit():
    with torch.device('meta'):
        backbone = build('swin', arch='small', out_indices=(0, 1))
    assert identify(backbone.state_dict()) == 'InLine-Swin tiny or small'


@pytest.mark.parametrize('family', FAMILIES)
def test_converting_twice_changes_nothing(family):
    ours = convert_official(tiny_state_dict(family))
    again = convert_official(ours)
    assert again.keys() == ours.keys()
    assert all(torch.equal(again[key], ours[key]) for key in ours)
    with pytest.raises(CheckpointError, match='official names already'):
        to_official(tiny_state_dict(family))


@pytest.mark.parametrize('family', FAMILIES)
def test_any_official_key_that_is_lost_or_renamed_is_noticed(family):
    official = tiny_state_dict(family, head=False)
    required = [k for k in official if 'relative_position_index' not in k]
    for key in required:
        changed = dict(official)
        tensor = changed.pop(key)
        with pytest.raises(CheckpointError, match='1 key is missing'):
            convert_official(changed)
        changed['x' + key] = tensor
        with pytest.raises(CheckpointError, match=f'unknown .x{key}'):
            convert_official(changed)


@pytest.mark.parametrize('family', FAMILIES)
def test_any_key_of_ours_that_is_lost_is_noticed_on_the_way_back(family):
    ours = convert_official(tiny_state_dict(family))
    for key in ours:
        with pytest.raises(CheckpointError, match='missing'):
            to_official({k: v for k, v in ours.items() if k != key})


def test_pvt_queries_come_before_keys_and_values():
    official = tiny_state_dict('pvt')
    ours = convert_official(official)
    qkv = ours['stages.2.blocks.1.attn.qkv.weight']
    assert torch.equal(qkv[:40], official['block3.1.attn.q.weight'])
    assert torch.equal(qkv[40:], official['block3.1.attn.kv.weight'])


def test_swin_merging_sees_the_neighbours_in_official_order():
    official = tiny_state_dict('swin')
    ours = convert_official(official)
    channels = official['layers.0.downsample.norm.weight'].numel() // 4
    merging = PatchMerging(channels, 2 * channels, norm_eps=1e-5)
    prefix = 'stages.1.downsample.'
    merging.load_state_dict(
        {
            key.removeprefix(prefix): tensor
            for key, tensor in ours.items()
            if key.startswith(prefix)
        }
    )
    image = torch.randn(1, 4, 6, channels)
    # The official layer: even and odd rows of even columns, then of odd ones.
    neighbours = torch.cat(
        [image[:, y::2, x::2] for x in (0, 1) for y in (0, 1)], dim=-1
    ).reshape(1, 6, 4 * channels)
    norm = [
        official[f'layers.0.downsample.norm.{leaf}']
        for leaf in ('weight', 'bias')
    ]
    expected = torch.nn.functional.layer_norm(
        neighbours, (4 * channels,), *norm
    ) @ (official['layers.0.downsample.reduction.weight'].T)
    got, hw_shape = merging(image.reshape(1, 24, channels), (4, 6))
    assert hw_shape == (2, 3)
    torch.testing.assert_close(got, expected)


def test_dense_norms_have_no_official_place():
    official = tiny_state_dict('swin', head=False)
    ours = convert_official(official)
    for index, channels in enumerate((12, 24, 48)):
        ours[f'norm{index}.weight'] = torch.ones(channels)
        ours[f'norm{index}.bias'] = torch.zeros(channels)
    back = to_official(ours)
    assert back.keys() == official.keys()


@pytest.mark.parametrize(
    'options',
    [
        dict(out_indices=(0, 1, 2)),
        dict(local_residual=False),
        dict(kernel='affine_relu'),
    ],
    ids=str,
)
def test_what_the_official_code_lacks_is_refused(options):
    backbone = build('swin', **options)
    with pytest.raises(CheckpointError, match='official'):
        to_official(backbone.state_dict())


def test_foreign_tensors_are_refused():
    with pytest.raises(CheckpointError, match='no tensor of an InLine'):
        convert_official({'conv1.weight': torch.zeros(3)})
    with pytest.raises(CheckpointError, match='no tensor of an InLine'):
        convert_official({})


def test_impossible_shapes_are_refused():
    official = tiny_state_dict('pvt')
    official['block1.0.attn.q.weight'] = torch.zeros(3)
    with pytest.raises(CheckpointError, match='a shape that no InLine'):
        convert_official(official)

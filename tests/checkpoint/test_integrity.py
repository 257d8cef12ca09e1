"""Whatever happens to one tensor of a file is noticed."""

import itertools
import random
import re

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from small_checkpoints import FAMILIES, build, load, tiny_state_dict

from inline_mm.checkpoint import (
    CheckpointError,
    InLinePretrained,
    convert_file,
    convert_official,
)
from inline_mm.checkpoint.integrity import check_tensors, hash_tensors
from inline_mm.checkpoint.loading import load_source
from inline_mm.checkpoint.source import Source, open_source

PTH, SAFE = '.pth', '.safetensors'


def lose(tensors, key):
    del tensors[key]


def rename(tensors, key):
    tensors[f'{key}x'] = tensors.pop(key)


def reshape(tensors, key):
    """One more channel, which no table of positions can be resized to."""
    tensor = tensors[key]
    tensors[key] = torch.cat([tensor, tensor[..., :1]], dim=-1)


def change(tensors, key):
    """One value by one bit, somewhere."""
    changed = tensors[key].clone()
    place = random.Random(key).randrange(changed.numel())
    changed.view(-1).view(torch.int32)[place] ^= 1
    tensors[key] = changed


def read(path):
    if path.suffix == PTH:
        content = torch.load(path, weights_only=True)
        return content['state_dict'], content['meta']
    with safe_open(path, 'pt') as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        return tensors, file.metadata()


def write(path, tensors, meta):
    if path.suffix == PTH:
        torch.save({'state_dict': tensors, 'meta': meta}, path)
    else:
        save_file(tensors, path, metadata=meta)


DAMAGES = [lose, rename, reshape, change]


@pytest.mark.parametrize('suffix', [PTH, SAFE])
@pytest.mark.parametrize('family', FAMILIES)
def test_any_key_of_a_converted_file(family, suffix, official, tmp_path):
    path = tmp_path / f'a{suffix}'
    convert_file(official(family), path, keep_head=True)
    tensors, meta = read(path)
    check_tensors(path, tensors, meta)
    assert len(tensors) > 30
    for key, damage in itertools.product(tensors, DAMAGES):
        damaged = dict(tensors)
        damage(damaged, key)
        with pytest.raises(CheckpointError, match='not as it was converted'):
            check_tensors(path, damaged, meta)


@pytest.mark.parametrize('suffix', [PTH, SAFE])
@pytest.mark.parametrize('family', FAMILIES)
def test_damaged_files_stop_where_they_are_opened(
    family, suffix, official, tmp_path
):
    path = tmp_path / f'a{suffix}'
    convert_file(official(family), path, keep_head=True)
    tensors, meta = read(path)
    write(path, tensors, meta)
    open_source(path)
    # Files take their time: one key of each kind, with the next damage.
    kinds = {re.sub(r'\d', '', key): key for key in tensors}
    damages = itertools.cycle(DAMAGES)
    for key, damage in zip(kinds.values(), damages, strict=False):
        damaged = dict(tensors)
        damage(damaged, key)
        write(path, damaged, meta)
        with pytest.raises(CheckpointError, match='not as it was converted'):
            open_source(path)


@pytest.mark.parametrize('damage', [lose, rename, reshape])
@pytest.mark.parametrize('family', FAMILIES)
def test_any_key_of_ours_in_a_file_without_a_hash(family, damage, tmp_path):
    ours = convert_official(tiny_state_dict(family))
    backbone = build(family)
    word = 'of another shape' if damage is reshape else 'not in the file'
    for key in ours:
        damaged = dict(ours)
        damage(damaged, key)
        source = Source(tmp_path / 'a.pth', '0' * 64, None, damaged)
        with pytest.raises(CheckpointError) as caught:
            load_source(backbone, source)
        assert f'1 {word}: {key}' in str(caught.value)


@pytest.mark.parametrize('suffix', [PTH, SAFE])
def test_two_tensors_that_changed_places(suffix, official, tmp_path):
    path = tmp_path / f'a{suffix}'
    convert_file(official('pvt'), path)
    tensors, meta = read(path)
    first, second = (
        f'backbone.stages.0.blocks.{block}.attn.qkv.weight' for block in (0, 1)
    )
    tensors[first], tensors[second] = tensors[second], tensors[first]
    write(path, tensors, meta)
    with pytest.raises(CheckpointError, match='not as it was converted'):
        InLinePretrained(path)(build('pvt'))


def test_partial_does_not_mean_damaged(official, tmp_path):
    path = tmp_path / 'a.pth'
    convert_file(official('deit'), path)
    tensors, meta = read(path)
    lose(tensors, 'backbone.cls_token')
    write(path, tensors, meta)
    backbone = build('deit')
    with pytest.raises(CheckpointError, match='without tensors_sha256') as e:
        load(backbone, path, allow_partial=True)
    assert str(path) in str(e.value) and '\n' not in str(e.value)
    # The way out that the sentence names.
    del meta['tensors_sha256']
    write(path, tensors, meta)
    load(backbone, path, allow_partial=True)
    info = backbone.init_info
    assert info['matched'] == info['total'] - 1


@pytest.mark.parametrize('suffix', [PTH, SAFE])
def test_files_with_official_names_too(suffix, official, tmp_path):
    ours, back = tmp_path / 'ours.pth', tmp_path / f'back{suffix}'
    convert_file(official('swin'), ours)
    convert_file(ours, back, official=True)
    open_source(back)
    if suffix == PTH:
        content = torch.load(back, weights_only=True)
        change(content['model'], 'norm.bias')
        torch.save(content, back)
    else:
        tensors, meta = read(back)
        change(tensors, 'norm.bias')
        write(back, tensors, meta)
    with pytest.raises(CheckpointError, match='not as it was converted'):
        open_source(back)


@pytest.mark.parametrize('suffix', [PTH, SAFE])
def test_a_named_hash_that_differs_is_noticed(suffix, official, tmp_path):
    path = convert_file(official('deit'), tmp_path, suffix=suffix).path
    # A whole, well-formed file, but of other weights.
    other = tmp_path / f'other{suffix}'
    tensors = {k: v + 1 for k, v in tiny_state_dict('deit').items()}
    torch.save({'model': tensors}, tmp_path / 'other source.pth')
    convert_file(tmp_path / 'other source.pth', other)
    assert other.read_bytes() != path.read_bytes()
    path.write_bytes(other.read_bytes())
    with pytest.raises(CheckpointError, match='changed or damaged'):
        InLinePretrained(path)(build('deit'))


def test_the_hash_sees_types_and_shapes_not_the_order():
    tensors = {
        'a': torch.arange(6).reshape(2, 3),
        'b': torch.tensor(1.5, dtype=torch.bfloat16),
        'c': torch.zeros(0, 3),
        'd': torch.tensor([True, False]),
    }
    expected = hash_tensors(tensors)
    assert hash_tensors(dict(reversed(tensors.items()))) == expected
    assert hash_tensors({**tensors, 'a': tensors['a'].T.clone().T}) == expected
    for name, tensor in (
        ('a', tensors['a'].reshape(3, 2)),
        ('a', tensors['a'].T),
        ('b', tensors['b'].half()),
        ('c', torch.zeros(3, 0)),
        ('d', torch.tensor([1, 0], dtype=torch.uint8)),
    ):
        assert hash_tensors({**tensors, name: tensor}) != expected

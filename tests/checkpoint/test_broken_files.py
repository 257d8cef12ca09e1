"""Files that can't be read: one sentence, from both who look at them."""

import io
import pickle
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from small_checkpoints import tiny_state_dict

from inline_mm.checkpoint import CheckpointError, check_checkpoint
from inline_mm.checkpoint.source import open_source

LEGACY = dict(_use_new_zipfile_serialization=False)


def refused(path, message, readers=(open_source, check_checkpoint)):
    for reader in readers:
        with pytest.raises(CheckpointError, match=message) as caught:
            reader(path)
        text = str(caught.value)
        assert '\n' not in text
        assert str(path) in text


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'', 'is empty'),
        (b'<!DOCTYPE html><html><body>Log in', 'looks like a web page'),
        (b'\n  <HTML><head>', 'looks like a web page'),
        (b'<?xml version="1.0"?><Error>AccessDenied', 'looks like a web page'),
        (b'version https://git-lfs.github.com/spec/v1\n', 'Git LFS pointer'),
        (b'\x1f\x8b\x08' + bytes(100), 'gzip archive'),
        (b'\x89HDF\r\n' + bytes(100), 'HDF5'),
        (b'\x93NUMPY' + bytes(100), 'numpy array'),
        (b'{"error": "not found"}', 'begins with'),
        (b'a,b\n1,2\n', 'begins with'),
        (pickle.dumps({'a': np.zeros(3)}), 'not written by torch.save'),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_files_of_another_kind(content, message, tmp_path):
    path = tmp_path / 'file.pth'
    path.write_bytes(content)
    refused(path, message)


def test_archives_of_another_kind(tmp_path):
    inner = tmp_path / 'weights.pth'
    torch.save({'a': torch.zeros(2)}, inner)
    path = tmp_path / 'file.pth'
    with zipfile.ZipFile(path, 'w') as archive:
        archive.write(inner, 'weights.pth')
    refused(path, 'a zip archive of other files .weights.pth')
    with tarfile.open(path, 'w') as archive:
        archive.add(inner, 'weights.pth')
    refused(path, 'is a tar archive')


def test_old_tar_pickles(tmp_path):
    path = tmp_path / 'file.pth'
    with tarfile.open(path, 'w', format=tarfile.PAX_FORMAT) as archive:
        for name in ('storages', 'tensors', 'pickle'):
            data = pickle.dumps(0, protocol=2)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    refused(path, 'PyTorch before 0.1.10')


@pytest.mark.filterwarnings('ignore:.*torch.jit')
def test_programs_and_pickled_models(tmp_path):
    model = torch.nn.Linear(2, 2)
    path = tmp_path / 'file.pth'
    torch.jit.trace(model, torch.ones(1, 2)).save(path)
    refused(path, 'TorchScript')
    torch.save(model, path)
    refused(path, 'class torch.nn.modules.linear.Linear.*state_dict')


@pytest.mark.parametrize('options', [{}, LEGACY], ids=['zip', 'legacy'])
@pytest.mark.parametrize('share', [0.001, 0.01, 0.3, 0.7, 0.99])
def test_truncated_files(share, options, tmp_path):
    buffer = io.BytesIO()
    torch.save({'model': tiny_state_dict('deit')}, buffer, **options)
    data = buffer.getvalue()
    path = tmp_path / 'file.pth'
    path.write_bytes(data[: int(len(data) * share)])
    refused(path, 'is cut off|is damaged')


def test_damaged_tensors(tmp_path):
    path = tmp_path / 'file.pth'
    torch.save({'state_dict': tiny_state_dict('deit')}, path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    refused(path, 'is damaged', readers=[open_source])
    check_checkpoint(path)  # reads no tensors


@pytest.mark.parametrize('size', [4, 12, 60, 5000])
def test_truncated_safetensors(size, tmp_path):
    from safetensors.torch import save

    data = save(tiny_state_dict('deit'))
    path = tmp_path / 'file.safetensors'
    path.write_bytes(data[:size])
    refused(path, 'is damaged', readers=[open_source])
    refused(path, 'is a safetensors file', readers=[check_checkpoint])


def test_missing_files_name_what_is_near(tmp_path):
    torch.save({}, tmp_path / 'inline_swin_t.pth')
    refused(tmp_path / 'inline_swin_s.pth', 'near it lie inline_swin_t.pth')
    refused(tmp_path / 'something else', 'its folder holds inline_swin_t.pth')
    refused(tmp_path / 'no' / 'folder.pth', 'there is no folder')
    refused(tmp_path, 'is a folder.*it holds inline_swin_t.pth')


def test_published_names_that_do_not_exist_name_what_is_near():
    with pytest.raises(CheckpointError, match='inline-swin-small') as caught:
        open_source('inline-swin-smal')
    assert 'published' in str(caught.value)
    with pytest.raises(CheckpointError, match='only http and https'):
        open_source('s3://bucket/file.pth')


def test_unreadable_files(tmp_path, monkeypatch):
    path = tmp_path / 'file.pth'
    torch.save({'model': tiny_state_dict('deit')}, path)

    def refuse(self, *args):
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr(type(path), 'open', refuse)
    refused(path, 'cannot be read: Permission denied')


def test_forced_weights_only_is_explained(tmp_path, monkeypatch):
    path = tmp_path / 'file.pth'
    torch.save(tiny_state_dict('deit'), path)
    monkeypatch.setenv('TORCH_FORCE_WEIGHTS_ONLY_LOAD', '1')
    refused(path, 'unset TORCH_FORCE_WEIGHTS_ONLY_LOAD', [open_source])
    check_checkpoint(path)


@pytest.mark.parametrize('options', [{}, LEGACY], ids=['zip', 'legacy'])
def test_a_quick_look_passes_whole_files(options, tmp_path, monkeypatch):
    path = tmp_path / 'epoch_1.pth'
    content = {
        'state_dict': tiny_state_dict('deit'),
        'meta': {'epoch': 1, 'cfg': 'model = dict()'},
        'optimizer': {'state': {}, 'param_groups': []},
        'message_hub': {'seed': np.int64(3)},
    }
    torch.save(content, path, **options)
    before = path.read_bytes()
    check_checkpoint(path)
    check_checkpoint(str(path))
    monkeypatch.setenv('HOME', str(tmp_path))
    check_checkpoint('~/epoch_1.pth')
    assert path.read_bytes() == before


def test_a_quick_look_at_what_is_no_dict(tmp_path):
    path = tmp_path / 'file.pth'
    torch.save([torch.zeros(2)], path)
    refused(path, 'holds a list, expected a dict of tensors')


def test_a_quick_look_maps_the_tensors_of_archives(tmp_path, monkeypatch):
    mapped = []

    def spy(*args, **options):
        mapped.append(options['mmap'])
        return original(*args, **options)

    original = torch.load
    monkeypatch.setattr(torch, 'load', spy)
    path = tmp_path / 'file.pth'
    for options in ({}, LEGACY):
        torch.save(tiny_state_dict('deit'), path, **options)
        check_checkpoint(path)
    assert mapped == [True, False]

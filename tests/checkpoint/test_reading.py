"""Files of all kinds: their tensors; nothing is executed."""

import contextlib
import os
import pickle
import subprocess
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer
from small_checkpoints import tiny_state_dict

from inline_mm.checkpoint import CheckpointError
from inline_mm.checkpoint.reading import read_file
from inline_mm.checkpoint.source import open_source

LEGACY = dict(_use_new_zipfile_serialization=False)


@pytest.fixture
def yacs(monkeypatch):
    """The config class of official files, from a package that isn't there."""

    class CfgNode(dict):
        pass

    CfgNode.__module__, CfgNode.__qualname__ = 'yacs.config', 'CfgNode'
    package = types.ModuleType('yacs')
    module = types.ModuleType('yacs.config')
    module.CfgNode = CfgNode

    def make(**values):
        node = CfgNode(values)
        node.__dict__['__immutable__'] = True
        return node

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, 'yacs', package)
        patch.setitem(sys.modules, 'yacs.config', module)
        yield make


def official_content(tensors, yacs):
    """What the official training code saves."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return {
        'model': OrderedDict(tensors),
        'optimizer': optimizer.state_dict(),
        'lr_scheduler': {'base_values': [0.1], 'metric': None},
        'max_accuracy': np.float64(83.7),
        'epoch': 299,
        'config': yacs(MODEL=yacs(NAME='inline', DEPTHS=[2, 2]), TAG='x'),
    }


@pytest.mark.parametrize('options', [{}, LEGACY], ids=['zip', 'legacy'])
def test_official_file_without_yacs(options, yacs, tmp_path):
    tensors = tiny_state_dict('swin')
    path = tmp_path / 'max_acc.pth'
    torch.save(official_content(tensors, yacs), path, **options)
    for name in ('yacs', 'yacs.config'):
        del sys.modules[name]
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)
    content, _ = read_file(path)
    assert content['epoch'] == 299
    assert content['model'].keys() == tensors.keys()
    for key, tensor in tensors.items():
        assert torch.equal(content['model'][key], tensor)
    assert 'yacs' not in sys.modules


def test_file_of_an_mmengine_run(tmp_path):
    history = HistoryBuffer()
    history.update(0.5)
    content = {
        'state_dict': tiny_state_dict('deit'),
        'meta': {'epoch': 3, 'dataset_meta': {'classes': ('a', 'b')}},
        'message_hub': {'log_scalars': {'loss': history}},
        'seed': np.int64(3),
    }
    path = tmp_path / 'epoch_3.pth'
    torch.save(content, path)
    found, meta = read_file(path)
    assert meta['epoch'] == 3
    assert meta['dataset_meta']['classes'] == ('a', 'b')
    assert torch.equal(
        found['state_dict']['cls_token'], content['state_dict']['cls_token']
    )


class Command:
    """Pickles to a call of any function."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize('options', [{}, LEGACY], ids=['zip', 'legacy'])
def test_nothing_pickled_is_executed(options, tmp_path):
    mark = tmp_path / 'executed'
    tensors = tiny_state_dict('deit')
    content = {
        'model': tensors,
        'a': Command(os.mkdir, str(mark)),
        'b': Command(eval, f'__import__("os").mkdir({str(mark)!r})'),
        'c': Command(subprocess.call, ['mkdir', str(mark)]),
        'd': Command(open, str(mark), 'w'),
        'e': Command(torch.load, str(tmp_path / 'other.pth')),
    }
    path = tmp_path / 'evil.pth'
    torch.save(content, path, **options)
    found, _ = read_file(path)
    assert not mark.exists()
    assert found['model'].keys() == tensors.keys()


def test_a_pickle_cannot_change_allowed_functions(tmp_path):
    # GLOBAL pushes the function, BUILD sets attributes on it.
    evil = (
        b'\x80\x02ctorch._utils\n_rebuild_tensor_v2\n'
        b'N}U\x05extraU\x05values\x86b.'
    )
    path = tmp_path / 'evil.pth'
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('evil/data.pkl', evil)
        archive.writestr('evil/version', '3\n')
    with contextlib.suppress(CheckpointError):
        read_file(path)
    assert not hasattr(torch._utils._rebuild_tensor_v2, 'extra')
    pickle.loads(evil)
    assert torch._utils._rebuild_tensor_v2.extra == 'value'
    del torch._utils._rebuild_tensor_v2.extra


def test_files_without_checksums(tmp_path):
    path = tmp_path / 'file.pth'
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(tiny_state_dict('deit'), path)
    finally:
        torch.serialization.set_crc32_options(True)
    assert 'cls_token' in open_source(path).tensors


@pytest.mark.parametrize('suffix', ['.safetensors', '.pth'])
def test_safetensors_whatever_the_suffix(suffix, tmp_path):
    from safetensors.torch import save_file

    tensors = tiny_state_dict('deit')
    path = tmp_path / f'file{suffix}'
    save_file(tensors, path, metadata={'format': 'pt', 'note': 'x'})
    source = open_source(path)
    assert source.meta['note'] == 'x'
    assert all(torch.equal(source.tensors[k], v) for k, v in tensors.items())


def test_home_and_spaces(tmp_path, monkeypatch):
    folder = tmp_path / 'my weights'
    folder.mkdir()
    torch.save(tiny_state_dict('deit'), folder / 'a file.pth')
    monkeypatch.setenv('HOME', str(tmp_path))
    source = open_source('~/my weights/a file.pth')
    assert source.path == folder / 'a file.pth'

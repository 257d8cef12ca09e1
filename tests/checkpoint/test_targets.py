"""Where converted files go; nothing is half written."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from small_checkpoints import tiny_state_dict

from inline_mm.checkpoint import CheckpointError, convert_file
from inline_mm.checkpoint.writing import write_atomically

TOOL = Path(__file__).parents[2] / 'tools' / 'convert_checkpoint.py'


def test_targets_that_cannot_be(official, tmp_path):
    source = official('deit')
    for target, message in (
        (tmp_path / 'no' / 'folder.pth', 'there is no folder'),
        (tmp_path / 'file.onnx', 'a new folder ends in /'),
        (f'{source}/', 'is a file, expected a folder'),
        (source / 'folder', 'cannot make the folder .*: Not a directory'),
        (source, 'exists; --force replaces it'),
    ):
        with pytest.raises(CheckpointError, match=message):
            convert_file(source, target)
    with pytest.raises(CheckpointError, match='is the source'):
        convert_file(source, source, force=True)
    torch.save({'model': tiny_state_dict('deit', head=False)}, source)
    with pytest.raises(CheckpointError, match='no classifier head'):
        convert_file(source, tmp_path / 'a.pth', keep_head=True)


@pytest.mark.parametrize('name', ['weights', 'weights/', 'a/b/', 'in1k.v2/'])
def test_folders_are_made_only_when_there_is_something_to_put_in(
    name, official, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = official('deit')
    with pytest.raises(CheckpointError, match='no weights under'):
        convert_file(source, name, key='ema')
    assert not (tmp_path / name).exists()
    first = convert_file(source, name, suffix='.safetensors').path
    assert first.parent == Path(name)
    assert first.name.startswith('inline-deit-custom_3rdparty_in1k_')
    assert convert_file(source, name).path.parent == first.parent
    assert len(list((tmp_path / name).iterdir())) == 2


def test_existing_files_stay_unless_forced(official, tmp_path):
    target = tmp_path / 'a.pth'
    target.write_bytes(b'old')
    with pytest.raises(CheckpointError, match='exists'):
        convert_file(official('deit'), target)
    assert target.read_bytes() == b'old'
    convert_file(official('deit'), target, force=True)
    assert target.read_bytes() != b'old'
    first = convert_file(official('deit'), tmp_path)
    with pytest.raises(CheckpointError, match='exists'):
        convert_file(official('deit'), tmp_path)
    assert convert_file(official('deit'), tmp_path, force=True) == first


def test_a_full_disk_leaves_the_old_file(official, tmp_path):
    """A limit on file sizes stands for the disk: writing fails half-way."""
    target = tmp_path / 'out' / 'a.pth'
    target.parent.mkdir()
    target.write_bytes(b'old')

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    command = [sys.executable, TOOL, official('deit'), target, '--force']
    done = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=limit
    )
    assert done.returncode != 0
    assert 'cannot write' in done.stderr and 'File too large' in done.stderr
    assert 'Traceback' not in done.stderr
    assert target.read_bytes() == b'old'
    assert list(target.parent.iterdir()) == [target]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / 'a.pth'
    target.write_bytes(b'old')

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr('os.fsync', interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, b'new')
    assert target.read_bytes() == b'old'
    assert list(tmp_path.iterdir()) == [target]


def test_damaged_sources_write_nothing(tmp_path):
    tensors = tiny_state_dict('swin')
    del tensors['layers.2.blocks.1.norm2.bias']
    torch.save({'model': tensors}, tmp_path / 'source.pth')
    out = tmp_path / 'out'
    out.mkdir()
    with pytest.raises(CheckpointError, match='1 key is missing'):
        convert_file(tmp_path / 'source.pth', out)
    assert list(out.iterdir()) == []

"""tools/convert_checkpoint.py: files that others can use, or one sentence."""

import hashlib
import re
import resource
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.runner import load_checkpoint
from small_checkpoints import (
    FAMILIES,
    build,
    tiny_state_dict,
)

from inline_mm import __version__
from inline_mm.checkpoint import (
    CheckpointError,
    InLinePretrained,
    convert_file,
    convert_official,
)
from inline_mm.checkpoint.writing import write_atomically

TOOL = Path(__file__).parents[2] / 'tools' / 'convert_checkpoint.py'


@pytest.fixture
def official(tmp_path):
    def write(family):
        path = tmp_path / 'source' / f'{family}.pth'
        path.parent.mkdir(exist_ok=True)
        torch.save({'model': tiny_state_dict(family), 'epoch': 300}, path)
        return path

    return write


@pytest.mark.parametrize('suffix', ['.pth', '.safetensors'])
@pytest.mark.parametrize('family', FAMILIES)
def test_converted_file_fills_a_backbone(family, suffix, official, tmp_path):
    source = official(family)
    result = convert_file(source, tmp_path, suffix=suffix)
    digest = hashlib.sha256(result.path.read_bytes()).hexdigest()
    assert re.fullmatch(
        rf'inline-{family}-custom_3rdparty_in1k_\d{{8}}-{digest[:8]}{suffix}',
        result.path.name,
    )
    assert result.key == 'model'
    assert result.dropped == ('head',)
    expected = convert_official(tiny_state_dict(family))
    backbone = build(family)
    InLinePretrained(result.path)(backbone)
    state = backbone.state_dict()
    assert all(torch.equal(state[key], expected[key]) for key in expected)


def test_published_variants_are_named(tmp_path):
    # The names follow the widths, which small tensors don't have.
    tensors = {
        key: torch.zeros(1).expand(tensor.shape)
        for key, tensor in full_shapes('deit_t').items()
    }
    source = tmp_path / 'max_acc.pth'
    torch.save({'model': tensors}, source)
    result = convert_file(source, tmp_path)
    assert result.path.name.startswith('inline-deit-tiny_3rdparty_in1k_')
    assert result.variant == 'InLine-DeiT tiny'


def full_shapes(model):
    from official_keys import meta_state_dict

    return meta_state_dict(model)


@pytest.mark.parametrize('family', FAMILIES)
def test_stock_loaders_take_converted_files(family, official, tmp_path):
    result = convert_file(official(family), tmp_path / 'a.pth', keep_head=True)
    content = torch.load(result.path, weights_only=True)
    assert content['meta'] == dict(
        converter=f'inline_mm {__version__}',
        source=f'{family}.pth',
        source_sha256=hashlib.sha256(
            official(family).read_bytes()
        ).hexdigest(),
        key='model',
        variant=result.variant,
    )
    model = torch.nn.Module()
    model.backbone = (
        build(family, out_indices=3) if family != 'deit' else (build(family))
    )
    channels = content['state_dict']['head.fc.weight'].shape[1]
    model.head = torch.nn.Module()
    model.head.fc = torch.nn.Linear(channels, 1000)
    load_checkpoint(model, str(result.path), strict=True)
    assert torch.equal(
        model.head.fc.bias, tiny_state_dict(family)['head.bias']
    )


def test_only_the_tensors_are_stored(official, tmp_path):
    whole = torch.zeros(1_000_000)
    tensors = tiny_state_dict('deit')
    tensors['cls_token'] = whole[:24].reshape(1, 1, 24)
    source = tmp_path / 'views.pth'
    torch.save(tensors, source)
    result = convert_file(source, tmp_path / 'a.pth')
    assert result.path.stat().st_size < source.stat().st_size - 3_900_000


@pytest.mark.parametrize('suffix', ['.pth', '.safetensors'])
@pytest.mark.parametrize('family', FAMILIES)
def test_trained_detectors_back_to_official_names(family, suffix, tmp_path):
    official = tiny_state_dict(family, head=False)
    backbone = build(family)
    backbone.load_state_dict(convert_official(official), strict=False)
    state = {f'backbone.{k}': v for k, v in backbone.state_dict().items()}
    state['bbox_head.cls.weight'] = torch.ones(3)
    source = tmp_path / 'epoch_12.pth'
    torch.save({'state_dict': state, 'meta': {'epoch': 12}}, source)
    result = convert_file(source, tmp_path / f'back{suffix}', official=True)
    assert result.dropped == ('bbox_head',)
    if suffix == '.pth':
        back = torch.load(result.path, weights_only=True)['model']
    else:
        from safetensors.torch import load_file

        back = load_file(result.path)
    assert back.keys() == official.keys()
    assert all(torch.equal(back[key], official[key]) for key in official)


def test_backbones_of_trained_models_are_no_third_party_files(tmp_path):
    source = tmp_path / 'epoch_1.pth'
    torch.save({'state_dict': build('pvt').state_dict()}, source)
    result = convert_file(source, tmp_path)
    assert result.path.name.startswith('inline-pvt-custom_backbone_')


def test_converting_twice_is_refused(official, tmp_path):
    for name in ('a.pth', 'a.safetensors'):
        first = convert_file(official('deit'), tmp_path / name).path
        with pytest.raises(CheckpointError, match='converted already'):
            convert_file(first, tmp_path / 'b.pth')
        assert not (tmp_path / 'b.pth').exists()
    with pytest.raises(CheckpointError, match='official names already'):
        convert_file(official('deit'), tmp_path / 'b.pth', official=True)


@pytest.mark.parametrize('suffix', ['.pth', '.safetensors'])
def test_a_named_hash_that_differs_is_noticed(suffix, official, tmp_path):
    path = convert_file(official('deit'), tmp_path, suffix=suffix).path
    content = bytearray(path.read_bytes())
    # A whole, well-formed file, but of other weights.
    other = tmp_path / f'other{suffix}'
    tensors = {k: v + 1 for k, v in tiny_state_dict('deit').items()}
    torch.save({'model': tensors}, tmp_path / 'other source.pth')
    convert_file(tmp_path / 'other source.pth', other)
    path.write_bytes(other.read_bytes())
    assert bytes(content) != path.read_bytes()
    with pytest.raises(CheckpointError, match='changed or damaged'):
        InLinePretrained(path)(build('deit'))


def test_damaged_sources_write_nothing(tmp_path):
    tensors = tiny_state_dict('swin')
    del tensors['layers.2.blocks.1.norm2.bias']
    torch.save({'model': tensors}, tmp_path / 'source.pth')
    out = tmp_path / 'out'
    out.mkdir()
    with pytest.raises(CheckpointError, match='1 key is missing'):
        convert_file(tmp_path / 'source.pth', out)
    assert list(out.iterdir()) == []


def test_targets_that_cannot_be(official, tmp_path):
    source = official('deit')
    for target, message in (
        (tmp_path / 'no' / 'folder.pth', 'there is no folder'),
        (tmp_path / 'file.onnx', 'neither a folder nor'),
        (source, 'exists; --force replaces it'),
    ):
        with pytest.raises(CheckpointError, match=message):
            convert_file(source, target)
    with pytest.raises(CheckpointError, match='is the source'):
        convert_file(source, source, force=True)
    torch.save({'model': tiny_state_dict('deit', head=False)}, source)
    with pytest.raises(CheckpointError, match='no classifier head'):
        convert_file(source, tmp_path / 'a.pth', keep_head=True)


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


@pytest.fixture
def tool(monkeypatch, capsys):
    """Runs the tool in this process: (exit code, stdout, stderr)."""
    main = runpy.run_path(str(TOOL))['main']

    def call(*args):
        monkeypatch.setattr(sys, 'argv', [str(TOOL), *map(str, args)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            # What the interpreter does with it.
            code = stop.code or 0
            if isinstance(code, str):
                print(code, file=sys.stderr)
                code = 1
        return code, *capsys.readouterr()

    return call


def test_the_tool_there_and_back(official, tool, tmp_path):
    ours, back = tmp_path / 'ours.pth', tmp_path / 'back.pth'
    code, out, _ = tool(official('swin'), ours, '--keep-head')
    assert code == 0
    assert 'from entry model' in out and str(ours) in out
    assert 'left out' not in out
    code, _, _ = tool(ours, back, '--to', 'official', '--keep-head')
    assert code == 0
    tensors = torch.load(back, weights_only=True)['model']
    expected = tiny_state_dict('swin')
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[key], expected[key]) for key in expected)


def test_the_tool_writes_to_the_current_folder(
    official, tool, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, _ = tool(official('deit'), '--safetensors')
    assert code == 0
    (path,) = tmp_path.glob('inline-deit-custom_3rdparty_in1k_*.safetensors')
    assert path.name in out
    assert 'left out: head' in out


@pytest.mark.parametrize(
    'content', [b'', b'<html>', b'PK\x03\x04', b'\x80\x02}q\x00'], ids=str
)
def test_the_tool_fails_in_one_sentence(content, tool, tmp_path):
    source, target = tmp_path / 'a.pth', tmp_path / 'b.pth'
    source.write_bytes(content)
    code, out, err = tool(source, target)
    assert code == 1
    assert out == ''
    assert err.startswith('error: ')
    assert len(err.splitlines()) == 1
    assert not target.exists()


def test_the_tool_explains_itself(tool):
    code, out, _ = tool('--help')
    assert code == 0
    for word in ('SRC', 'DST', '--to', '--key', 'examples', 'official'):
        assert word in out

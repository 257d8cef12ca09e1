"""tools/convert_checkpoint.py."""

import runpy
import sys
from pathlib import Path

import pytest
import torch
from small_checkpoints import tiny_state_dict

TOOL = Path(__file__).parents[2] / 'tools' / 'convert_checkpoint.py'


@pytest.fixture
def tool(monkeypatch, capsys):
    """Runs the tool in this process: (exit code, stdout, stderr)."""

    def call(*args):
        monkeypatch.setattr(sys, 'argv', [str(TOOL), *map(str, args)])
        code = 0
        try:
            runpy.run_path(str(TOOL), run_name='__main__')
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


def test_the_examples_of_the_help_text(official, tool, tmp_path, monkeypatch):
    """In an empty folder, as after cloning."""
    monkeypatch.chdir(tmp_path)
    official('swin').rename('max_acc.pth')
    official('pvt').rename('inline-pvt-small')
    examples = [
        line.split()[1:]
        for line in TOOL.read_text(encoding='utf-8').splitlines()
        if line.startswith('  tools/convert_checkpoint.py')
    ]
    assert len(examples) == 3
    for arguments in examples[:2]:
        code, _, err = tool(*arguments)
        assert code == 0, err
    found = sorted(path.name for path in Path('weights').iterdir())
    assert [name.split('_')[0] for name in found] == [
        'inline-pvt-custom',
        'inline-swin-custom',
    ]
    trained = Path(examples[2][0])
    trained.parent.mkdir(parents=True)
    Path('weights', found[1]).rename(trained)
    code, _, err = tool(*examples[2])
    assert code == 0, err
    assert Path(examples[2][1]).is_file()


@pytest.mark.parametrize(
    'content', [b'', b'<html>', b'PK\x03\x04', b'\x80\x02}q\x00'], ids=str
)
def test_the_tool_fails_in_one_sentence(content, tool, tmp_path):
    source, target = tmp_path / 'a.pth', tmp_path / 'b.pth'
    source.write_bytes(content)
    code, out, err = tool(source, target)
    assert code == 1
    assert out == ''
    assert err.startswith('convert_checkpoint.py: ')
    assert len(err.splitlines()) == 1
    assert not target.exists()


def test_the_tool_explains_itself(tool):
    code, out, _ = tool('--help')
    assert code == 0
    for word in ('SRC', 'DST', '--to', '--key', 'examples', 'official'):
        assert word in out

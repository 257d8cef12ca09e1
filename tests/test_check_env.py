"""tools/check_env.py on whole, broken and missing installations."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / 'tools' / 'check_env.py'
# Makes imports fail in the process that has this on its path.
POISON = """
import os, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in os.environ['POISONED'].split(','):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Missing())
"""
ALL = 'torch,torchvision,numpy,mmengine,mmcv,mmdet,mmseg,mmpretrain,inline_mm'


@pytest.fixture(scope='module')
def check_env():
    spec = importlib.util.spec_from_file_location('check_env', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(folder, *args, poisoned=''):
    (folder / 'sitecustomize.py').write_text(POISON)
    result = subprocess.run(
        [sys.executable, SCRIPT, *args],
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(folder), 'POISONED': poisoned},
    )
    assert 'Traceback' not in result.stderr
    return result.returncode, result.stdout


def test_help(tmp_path):
    code, out = run(tmp_path, '--help')
    assert code == 0
    assert 'detection' in out


def test_whole_environment(tmp_path):
    code, out = run(tmp_path)
    assert code == 0, out
    rows = dict(line.split(None, 1) for line in out.splitlines() if line)
    for name in [*ALL.split(','), 'python']:
        assert rows[name][0].isdigit(), (name, rows[name])
    assert rows['operators'].startswith('yes')
    assert out.endswith('Detection can run.\n')


def test_nothing_installed(tmp_path):
    code, out = run(tmp_path, poisoned=ALL)
    assert code == 1
    assert out.count('not installed') >= len(ALL.split(','))
    assert 'pip install' in out.splitlines()[-1] or 'make' in out


def test_operators_that_do_not_load(tmp_path):
    """The hosts that detection does without are no obstacle beside it."""
    code, out = run(tmp_path, poisoned='mmcv._ext,mmseg,mmpretrain')
    assert code == 1
    assert out.count('not installed') == 2
    assert "Detection cannot run: mmcv's operators" in out
    assert out.splitlines()[-1].endswith('build_mmcv.py --force')


def test_both_lines_installed(tmp_path):
    info = tmp_path / 'mmcv-2.1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Name: mmcv\nVersion: 2.1.0\n')
    code, out = run(tmp_path, poisoned=ALL)
    assert code == 1
    assert 'two lines' in out
    assert 'pip uninstall -y mmcv onedl-mmengine' in out.splitlines()[-1]


@pytest.mark.parametrize('name', ALL.split(','))
def test_each_missing_module_gets_its_command(check_env, monkeypatch, name):
    monkeypatch.setattr(sys, 'prefix', '/usr')
    problem, command = check_env.diagnose(
        {name: 'not installed'}, (True, 'CPU'), [], ([], [])
    )
    if name in check_env.OPTIONAL:
        assert (problem, command) == ('', '')
        return
    assert problem == f'{name} not installed'
    expected = {
        'torch': f'pip install {check_env.TORCH}',
        'torchvision': ' torchvision',
        'mmcv': 'build_mmcv.py',
        'inline_mm': f'pip install {check_env.ROOT}',
        'mmengine': 'pip install onedl-mmengine',
        'mmdet': 'pip install onedl-mmdetection',
        'numpy': 'pip install numpy',
    }
    assert command.endswith(expected[name])


def test_gpu_with_cpu_operators_is_a_problem(check_env):
    problem, command = check_env.diagnose(
        {}, (True, 'CPU'), ['some GPU'], ([], [])
    )
    assert 'built for the CPU' in problem
    assert command.endswith('build_mmcv.py --force')
    assert check_env.diagnose(
        {}, (True, 'CPU and CUDA 12.8'), ['some GPU'], ([], [])
    ) == ('', '')

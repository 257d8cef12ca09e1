"""How every command begins and ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = [
    *(
        [str(path)]
        for path in sorted((ROOT / 'tools').glob('[!_]*.py'))
        if path.name not in ('setup_env.py', 'build_mmcv.py')
    ),
    *(
        ['-m', name]
        for name in ('benchmarks', 'experiments', 'experiments.demo', 'zoo')
    ),
]
WITHOUT_TORCH = """
import runpy, sys
sys.modules.update(torch=None, mmengine=None, inline_mm=None)
module = sys.argv[1] == '-m'
del sys.argv[: 1 + module]
if module:
    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
else:
    sys.path.insert(0, sys.argv[0].rpartition('/')[0])
    runpy.run_path(sys.argv[0], run_name='__main__')
"""
# As users have it: what is printed into a pipe waits in a buffer.
BUFFERED = {k: v for k, v in os.environ.items() if k != 'PYTHONUNBUFFERED'}
ENDS = {
    'success': ('pass', 0, 'printed'),
    'file': (
        "open('none.txt')",
        1,
        'end: [Errno 2] No such file or directory',
    ),
    'ctrl-c': ('os.kill(os.getpid(), signal.SIGINT)', 130, 'end: stopped'),
    'sigterm': ('os.kill(os.getpid(), signal.SIGTERM)', 143, 'end: stopped'),
    'arguments': (
        "argparse.ArgumentParser('end').error('wrong')",
        2,
        'end: error: wrong',
    ),
    'not installed': (
        "raise ModuleNotFoundError('', name='inline_mm')",
        1,
        'end: inline_mm is not installed here',
    ),
    'too old': (
        "raise ImportError('inline_mm 1 needs torch 2')",
        1,
        'end: inline_mm 1 needs torch 2',
    ),
    'launch': (
        "from inline_mm.errors import LaunchError; raise LaunchError('no')",
        1,
        'end: no',
    ),
    'stopped run': (
        'from inline_mm.errors import RunStoppedError; '
        "raise RunStoppedError('kept', 15)",
        143,
        'end: kept',
    ),
}


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=BUFFERED,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


@pytest.mark.parametrize('command', COMMANDS, ids=' '.join)
def test_help_and_refusals_come_before_torch(command):
    done = run('-c', WITHOUT_TORCH, *command, '--help')
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith('usage: ')
    done = run('-c', WITHOUT_TORCH, *command, '--no-such-option')
    assert done.returncode == 2, done.stdout
    assert 'error: ' in done.stdout.splitlines()[-1]


@pytest.mark.parametrize('name', ENDS)
def test_the_last_sentence_is_the_last_line(name):
    what, code, words = ENDS[name]
    done = run(
        '-c',
        'import argparse, os, signal\n'
        'from tools._command import command\n'
        f"with command('end'):\n    print('printed')\n    {what}",
    )
    assert done.returncode == code, done.stdout
    assert 'Traceback' not in done.stdout
    assert 'printed' in done.stdout
    assert done.stdout.splitlines()[-1].startswith(words)


def test_faults_of_ours_keep_their_traceback():
    done = run(
        '-c',
        'from tools._command import command\n'
        "with command('end'):\n    raise ValueError('a fault')",
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == 'ValueError: a fault'


def test_a_reader_that_has_gone_ends_it_quietly():
    process = subprocess.Popen(
        [
            *(sys.executable, '-c'),
            'from tools._command import command\n'
            "with command('end'):\n    while True: print('printed')",
        ],
        cwd=ROOT,
        env=BUFFERED,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == 'printed\n'
    process.stdout.close()
    assert process.stderr.read() == ''
    process.stderr.close()
    assert process.wait() == 128 + signal.SIGPIPE


def test_the_hosts_are_quiet_about_what_nobody_asked_for():
    done = run(
        '-c',
        'from inline_mm.engine import launch\n'
        'import mmdet.datasets, mmpretrain.datasets, mmseg.datasets',
    )
    assert done.returncode == 0
    assert 'OneDL' not in done.stdout

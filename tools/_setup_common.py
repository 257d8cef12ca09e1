"""What setup_env.py and build_mmcv.py share; standard library only."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

GIGABYTES = 9
PIP = [sys.executable, '-m', 'pip', '--disable-pip-version-check']
PROBE = """#include <Python.h>
#include <optional>
#if __cplusplus < 201703L
#error C++17 is needed
#endif
int main() { return std::optional<int>(0).value(); }
"""


class SetupError(Exception):
    """A failure the user can mend; the text says how."""


class Hosts(NamedTuple):
    """A line of the OpenMMLab packages that the project is tested with."""

    torch: str  # pip's arguments that choose the tested torch
    mmcv: str  # its distribution of mmcv
    mmcv_version: str
    setuptools: str  # what builds that
    others: tuple  # distributions of mmcv that own the same import name
    venv: str  # folder of its environment in a clone
    suffix: str  # of its files in requirements/
    groups: tuple  # files of requirements/ without that suffix
    newest: int  # minor version of Python that has wheels of that torch


HOSTS = {
    'onedl': Hosts(
        'torch==2.10.0 torchvision==0.25.0',
        'onedl-mmcv',
        '2.3.6',
        'setuptools>=80',
        ('mmcv', 'mmcv-full', 'mmcv-lite'),
        '.venv',
        '',
        ('runtime', 'tests', 'export'),
        12,
    ),
    'upstream': Hosts(
        'torch==2.1.2 torchvision==0.16.2',
        'mmcv',
        '2.1.0',
        'setuptools<81',  # the last with pkg_resources
        ('onedl-mmcv', 'mmcv-full', 'mmcv-lite'),
        '.venv-upstream',
        '-upstream',
        ('runtime', 'tests'),  # its torch is too old for the export
        11,
    ),
}


class Step(NamedTuple):
    """One installation step."""

    name: str  # of its stamp
    text: str  # what happens and roughly how long, for the user
    inputs: list  # strings: what it installs; a change runs it again
    provides: list  # glob patterns of what it leaves in site-packages
    action: Callable  # does it; takes nothing

    @property
    def key(self):
        return hashlib.sha256('\n'.join(self.inputs).encode()).hexdigest()


def interrupt_on_sigterm():
    """Makes `kill` end this as Ctrl-C does: with what it has started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def say(text):
    print(text, flush=True)


def run(command, log, env=None):
    """Runs a command into a log file, showing that it is still going.

    Args:
        command (list[str]): Program and arguments.
        log (Path): File that gets stdout and stderr, appended.
        env (dict, optional): Variables on top of the current ones.

    Raises:
        SetupError: The command failed; the text has the log's last lines.
    """
    command = [str(part) for part in command]
    with log.open('ab') as out:
        out.write(f'\n$ {shlex.join(command)}\n'.encode())
        out.flush()
        env = {**os.environ, **(env or {})}
        options = {'stdout': out, 'stderr': subprocess.STDOUT, 'env': env}
        with started(command, **options) as process:
            show_progress(process, log)
    if process.returncode:
        tail = log.read_text(errors='replace').splitlines()[-15:]
        raise SetupError('\n'.join(['the end of the output:', *tail]))


@contextlib.contextmanager
def started(command, **options):
    """Starts a command; if left early, ends it and all that it started."""
    process = subprocess.Popen(
        command,
        start_new_session=True,
        close_fds=False,  # it holds setup_env's lock as well
        **options,
    )
    try:
        yield process
    except BaseException:
        end_group(process)
        raise


def end_group(process):
    """Ends a process and its group: asks, if need be again, then forces.

    One request is not enough: a Python that is just importing can lose the
    KeyboardInterrupt that it makes of the signal.
    """
    for number in [signal.SIGTERM] * 5 + [signal.SIGKILL]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=3)
            return


def show_progress(process, log):
    """Prints the elapsed time and the log's last line every 30 s."""
    start = time.monotonic()
    while True:
        try:
            process.wait(timeout=30)
            return
        except subprocess.TimeoutExpired:
            with log.open('rb') as text:
                text.seek(max(0, log.stat().st_size - 4000))
                lines = text.read().decode(errors='replace').split('\n')
            last = next((x.strip() for x in reversed(lines) if x.strip()), '')
            say(f'        {time.monotonic() - start:4.0f} s  {last[:58]}')


def read_text(path):
    return path.read_text() if path.exists() else ''


def write_whole(path, text):
    """Writes a file so that it is there whole or not at all."""
    partial = path.with_suffix('.partial')
    partial.write_text(text)
    partial.replace(path)


@contextlib.contextmanager
def locked(path):
    """Holds a lock on a file, waiting for it.

    Commands started by ``run`` inherit it: if this process is killed, the
    next one waits until pip has ended as well.
    """
    with path.open() as file:
        os.set_inheritable(file.fileno(), True)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say('another set-up of this clone is running: waiting for it')
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_compiler():
    """Compiles one C++17 line with Python's headers.

    Raises:
        SetupError: There is no compiler, or it lacks C++17 or Python.h.
    """
    compiler = shlex.split(os.environ.get('CXX', 'c++'))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, 'probe.cpp')
        source.write_text(PROBE)
        include = '-I' + sysconfig.get_paths()['include']
        command = [*compiler, '-std=c++17', include, '-c', source.name]
        try:
            result = subprocess.run(
                command, cwd=folder, capture_output=True, text=True
            )
        except OSError:
            raise SetupError(
                f'no C++ compiler: {compiler[0]!r} cannot be run; install '
                'one (Debian, Ubuntu: apt install g++) or name it in CXX'
            ) from None
    if 'Python.h' in result.stderr:
        version = '{}.{}'.format(*sys.version_info)
        raise SetupError(
            f'the headers of Python {version} (Python.h) are missing: '
            f'install them (Debian, Ubuntu: apt install python{version}-dev)'
        )
    if result.returncode:
        raise SetupError(
            f'{compiler[0]!r} does not compile a line of C++17: install a '
            'newer one (GCC 9 or later) or name it in CXX; it said: '
            f'{result.stderr.strip()[:200]}'
        )


def check_python(newest):
    if not (3, 10) <= sys.version_info[:2] <= (3, newest):
        names = [f'python3.{minor}' for minor in range(newest, 9, -1)]
        found = [name for name in names if shutil.which(name)]
        raise SetupError(
            'Python {}.{} runs this; 3.10 to 3.{} is needed: '.format(
                *sys.version_info[:2], newest
            )
            + f'make env PYTHON={(found or names)[0]}'
        )
    if not importlib.util.find_spec('ensurepip'):
        raise SetupError(
            'this Python has no ensurepip, so it cannot make an environment: '
            'install it (Debian, Ubuntu: apt install python{}.{}-venv)'.format(
                *sys.version_info
            )
        )


def check_disk(folder, gigabytes):
    free = shutil.disk_usage(folder).free / 1e9
    if free < gigabytes:
        raise SetupError(
            f'{free:.1f} GB are free at {folder}; {gigabytes} GB are needed: '
            'free some, or clone the project onto another disk'
        )


def check_torch(arguments, default):
    names = {re.split(r'[=<>!~\[ ]', part)[0] for part in arguments}
    if not {'torch', 'torchvision'} <= names:
        raise SetupError(
            f'TORCH is {shlex.join(arguments)!r}; it must name torch and '
            f'torchvision, for example TORCH="{default}"'
        )


def create(venv, newest):
    """Makes the environment, where everything that it needs is there."""
    check_python(newest)
    check_compiler()
    check_disk(venv.parent, GIGABYTES)
    say(f'creating {venv}: a few seconds')
    command = [sys.executable, '-m', 'venv', str(venv)]
    if subprocess.run(command).returncode:
        raise SetupError(f'{shlex.join(command)} failed, see above')

"""Part of the suite where others run it: `make test-elsewhere`.

A row is a circumstance in which something once failed, or could: each runs
the same test files in a copy of the checkout, and ends in a line of the
table. Names of rows as arguments run these alone.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
# Tools started as processes, what they print, write and refuse, files found
# by name, texts in other encodings: what depends on the place.
FILES = (
    'test_command.py',
    'test_tools.py',
    'test_check_env.py',
    'test_registration.py',
    'test_architecture.py',
    'checkpoint/test_convert_tool.py',
    'checkpoint/test_writing.py',
    'compare',
    'configs/test_own_data.py',
    'data_check/test_check.py',
    'engine/test_long_runs.py',
    'export',
    'predict',
    'zoo',
)
NOBODY = 65534
# Nothing of the caller's environment reaches a row but this.
CLEAN = dict(PATH=os.environ['PATH'], LC_ALL='C.UTF-8', OMP_NUM_THREADS='1')


@dataclass(frozen=True)
class Row:
    """A circumstance.

    Args:
        text (str): what it is, for the table.
        env (dict): variables on top of the clean ones; None takes one out.
        checkout (str): name of the copy's folder.
        git (bool): whether the copy is a repository.
        read_only (bool): whether the copy can't be written.
        other_user (bool): whether root hands over to a user without rights.
    """

    text: str
    env: dict = field(default_factory=dict)
    checkout: str = 'checkout'
    git: bool = False
    read_only: bool = False
    other_user: bool = False


ROWS = {
    'buffered': Row('a clean environment, a repository', git=True),
    'unbuffered': Row(
        'PYTHONUNBUFFERED and PYTHONDONTWRITEBYTECODE set',
        dict(PYTHONUNBUFFERED='1', PYTHONDONTWRITEBYTECODE='1'),
    ),
    'ascii': Row('LC_ALL=C', dict(LC_ALL='C')),
    'path': Row('blanks and accents in the path', checkout='größe 1 é 木'),
    'tarball': Row('an unpacked archive, no .git'),
    'read-only': Row(
        'a read-only checkout, work folder elsewhere',
        read_only=True,
        other_user=True,
    ),
    'home': Row(
        'a home folder that can not be written',
        dict(HOME='locked'),
        other_user=True,
    ),
    'user': Row('a user that is not root', other_user=True),
    'narrow': Row(
        'COLUMNS=40, TERM=dumb, no terminal', dict(COLUMNS='40', TERM='dumb')
    ),
    'threads': Row('OMP_NUM_THREADS unset', dict(OMP_NUM_THREADS=None)),
    'tmpdir': Row('TMPDIR elsewhere, with a blank', dict(TMPDIR='other tmp')),
    'zone': Row('a clock of another time zone', dict(TZ='Pacific/Apia')),
}


def copy_checkout(row: Row, folder: Path) -> Path:
    """Copies what git would carry, or all but what is built here."""
    target = folder / row.checkout
    ignored = shutil.ignore_patterns(
        *('.git', '.venv*', '.mim', 'work_dirs', '__pycache__', '.*_cache'),
        '*.egg-info',
    )
    shutil.copytree(ROOT, target, symlinks=True, ignore=ignored)
    mim = target / 'inline_mm' / '.mim'
    mim.mkdir()
    for name in ('configs', 'tools', 'model-index.yml'):
        (mim / name).symlink_to(f'../../{name}')
    if row.git:
        for command in ('init -q', 'add -A'):
            subprocess.run(['git', *command.split()], cwd=target, check=True)
    return target


@contextmanager
def prepared(row: Row) -> Iterator[tuple[Path, Path, dict]]:
    """Makes checkout, work folder and environment of a row."""
    with tempfile.TemporaryDirectory(prefix='elsewhere_') as name:
        folder = Path(name)
        checkout = copy_checkout(row, folder)
        work, home = folder / 'work', folder / 'home'
        work.mkdir()
        home.mkdir()
        env = {**CLEAN, 'HOME': str(home), 'PYTHONPATH': str(checkout)}
        for key, value in row.env.items():
            if key == 'TMPDIR':
                value = str(folder / value)
                os.mkdir(value)
            elif key == 'HOME':
                value = str(folder / value)
                os.mkdir(value, mode=0o555)
            env[key] = value
        env = {key: value for key, value in env.items() if value is not None}
        if row.other_user and os.geteuid() == 0:
            for place in (folder, work, home, *folder.glob('other*')):
                os.chown(place, NOBODY, NOBODY)
        if row.read_only:
            change_mode(checkout, 0o555)
        yield checkout, work, env
        change_mode(checkout, 0o755)


def change_mode(folder: Path, mode: int) -> None:
    """Sets the rights of a folder and of all folders in it."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, mode)


def run_row(row: Row, arguments: list[str]) -> tuple[int, str]:
    """Runs the test files in a row's circumstances.

    Returns:
        tuple[int, str]: pytest's exit code and output.
    """
    with prepared(row) as (checkout, work, env):
        command = [
            *(sys.executable, '-m', 'pytest', '-q', '-n', '2'),
            *('-m', 'not heavy', '-p', 'no:cacheprovider', '-rs'),
            *('-c', checkout / 'pyproject.toml', '--rootdir', checkout),
            *('--basetemp', work / 'tmp'),
            *(checkout / 'tests' / name for name in FILES),
            *arguments,
        ]
        user = {}
        if row.other_user and os.geteuid() == 0:
            user = dict(user=NOBODY, group=NOBODY, extra_groups=[])
        done = subprocess.run(
            command,
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding='utf-8',
            errors='replace',
            **user,
        )
    return done.returncode, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        description='Run part of the suite in other circumstances.'
    )
    parser.add_argument(
        'rows', nargs='*', metavar='ROW', help=f'of {", ".join(ROWS)}; all'
    )
    parser.add_argument('-k', help="pytest's: tests by name")
    args = parser.parse_args()
    unknown = sorted(set(args.rows) - set(ROWS))
    if unknown:
        parser.error(f'there is no row {unknown[0]!r}: {", ".join(ROWS)}')
    console = Console()
    table = Table('row', 'circumstance', 'result', 's')
    failed = False
    for name in args.rows or ROWS:
        start = time.monotonic()
        code, output = run_row(ROWS[name], ['-k', args.k] if args.k else [])
        failed |= code != 0
        if code:
            console.print(output, markup=False, highlight=False)
        last = output.strip().splitlines()[-1].strip('= ')
        seconds = f'{time.monotonic() - start:.0f}'
        table.add_row(name, ROWS[name].text, last, seconds)
        console.print(f'{name}: {last}', markup=False)
    console.print(table)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())

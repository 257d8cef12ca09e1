"""Python files run as scripts, without paying for the hosts' imports twice.

The processes come from a server that has imported the hosts, and not
inline_mm: that a config alone brings the package in is part of what is tested.
"""

import multiprocessing
import os
import runpy
import sys
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple
from unittest import mock

CONTEXT = multiprocessing.get_context('forkserver')
CONTEXT.set_forkserver_preload(['mmdet.apis', 'mmseg.apis'])
ENVIRONMENT = dict(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES='')


class Done(NamedTuple):
    """Exit code and output of a script."""

    returncode: int
    output: str


def run_script(folder: Path, *command) -> Done:
    """Runs a Python file with arguments in a folder."""
    with mock.patch.dict(os.environ, ENVIRONMENT):
        forkserver.ensure_running()
    log = folder / 'output.log'
    process = CONTEXT.Process(
        target=_execute, args=(folder, [str(part) for part in command], log)
    )
    process.start()
    process.join()
    return Done(process.exitcode, log.read_text())


def _execute(folder: Path, argv: list[str], log: Path) -> None:
    assert 'inline_mm' not in sys.modules
    with open(log, 'w') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    sys.argv[:] = argv
    # As `python FILE` does.
    sys.path[0] = str(Path(argv[0]).resolve().parent)
    runpy.run_path(argv[0], run_name='__main__')

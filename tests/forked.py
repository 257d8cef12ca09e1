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
ROOT = Path(__file__).parents[1]
ENVIRONMENT = dict(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES='')


class Done(NamedTuple):
    """Exit code and output of a script."""

    returncode: int
    output: str


def run_script(folder: Path, *command) -> Done:
    """Runs a Python file, or `-m` and a package of the checkout, in a folder.

    The rest of the command are its arguments.
    """
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
    # What the server printed waits in the buffer that this process inherits.
    sys.stdout.flush()
    with open(log, 'w') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    sys.argv[:] = argv
    if argv[0] == '-m':
        os.environ['PYTHONPATH'] = sys.path[0] = str(ROOT)
        sys.argv.pop(0)
        runpy.run_module(argv[1], run_name='__main__', alter_sys=True)
        return
    # As `python FILE` does.
    sys.path[0] = str(Path(argv[0]).resolve().parent)
    runpy.run_path(argv[0], run_name='__main__')

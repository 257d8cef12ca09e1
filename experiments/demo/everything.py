"""The demonstration: all runs, from checks to report."""

import importlib.util
import json
import shutil
import sys
import time

import torch
from rich.console import Console

from .report import NOTES, console_tables, draw_curves, write_page
from .run import RUNS, describe, execute

# Marks a folder as this module's, which it may therefore delete.
MARKER = '.inline_mm_demo'


def check(root, iters):
    """Refuse what would fail later, before anything is written."""
    for host in ('mmdet', 'mmseg'):
        if importlib.util.find_spec(host) is None:
            raise ImportError(f'{host} is not installed; run `make env`')
    missing = [r.config for r in RUNS if not (root / r.config).is_file()]
    for folder in ('tests/data/coco', 'tests/data/ade'):
        if not (root / folder).is_dir():
            missing.append(folder)
    if missing:
        raise FileNotFoundError(
            f'{root} lacks {", ".join(missing)}; the demonstration needs a '
            'clone of the project'
        )
    if iters is not None and iters < 2:
        raise ValueError(
            f'--iters is {iters}; give 2 or more, the schedule has a warm-up '
            'and a decay'
        )


def prepare_out(out):
    """Make an empty folder; delete an earlier demonstration in it."""
    if out.exists():
        if not out.is_dir():
            raise ValueError(f'{out} is a file; give a folder with --out')
        if any(out.iterdir()) and not (out / MARKER).exists():
            raise ValueError(
                f'{out} holds something else than a demonstration; give '
                'another folder with --out'
            )
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / MARKER).touch()


def run_all(root, out, iters=None):
    """Run the demonstration from a fresh state and write its report.

    Args:
        root (Path): The project's root (configs and bundled data).
        out (Path): Folder for everything written. An earlier demonstration in
            it is deleted.
        iters (int, optional): Iterations per run instead of the configs'.
            Defaults to None.

    Raises:
        ImportError: A host is not installed.
        ValueError: ``out`` holds other things, or ``iters`` is below 2.
        OSError: Configs or data are missing, or ``out`` can't be written.
        RuntimeError: A run failed; its log tells the rest.
    """
    check(root, iters)
    out = out.resolve()
    prepare_out(out)
    # A second thread gains little on models this small, and waits for the
    # first in a busy loop: on a busy machine that is many times slower.
    torch.set_num_threads(1)
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    say = console.print
    say(
        f'{len(RUNS)} short trainings on the bundled images; 5 to 10 minutes '
        f'on 2 cores.\nFull logs: {out}/runs/*/console.log'
    )
    start = time.time()
    results = []
    for number, run in enumerate(RUNS, 1):
        say(f'[{number}/{len(RUNS)}] {run.title}: {run.data}')
        results.append(execute(run, root, out, say, iters))
        say(
            f'  tested: {describe(results[-1]["metrics"])}; '
            f'{time.time() - start:.0f} s since the start'
        )
    (out / 'results.json').write_text(json.dumps(results, indent=2) + '\n')
    draw_curves(results, out, out / 'curves.png')
    write_page(results, out / 'index.html')
    for table in console_tables(results):
        console.print(table)
    for note in NOTES:
        say(note)
    say(f'Everything on one page: {out / "index.html"}')

"""The runs of an experiment: several at a time, finished ones kept."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from inline_mm.compare import compare, read_record
from inline_mm.errors import LaunchError

from .one_run import DATA, RESULT, is_done, load_config
from .shapes import ShapesConfig, make_shapes

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Run:
    """One training with its test.

    Args:
        label (str): its row in the tables.
        config (Path): file of the config.
        seed (int): of weights and order.
        variant (str): what distinguishes it from others of its config, for
            names of files. Defaults to an empty string.
        options (dict): changes of the config, by dotted key. Defaults to an
            empty dict.
    """

    label: str
    config: Path
    seed: int
    variant: str = ''
    options: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        """str: name of its folder."""
        variant = f'_{self.variant}' if self.variant else ''
        return f'{self.config.stem}{variant}_seed-{self.seed}'


def run_experiment(
    runs: Sequence[Run],
    write_report: Callable[[Sequence[dict], Path], None],
    out: Path,
    shapes: ShapesConfig,
    jobs: int,
    iterations: int | None,
    say: Callable[[str], None],
) -> None:
    """Runs what isn't finished yet, and writes tables and report.

    Args:
        runs (Sequence[Run]): all runs.
        write_report (Callable): takes their labelled records and the folder.
        out (Path): folder of the experiment. Its finished runs are kept if
            they are of the same config, seed and shapes.
        shapes (ShapesConfig): the data.
        jobs (int): runs at a time, on one thread each.
        iterations (int | None): of each run; None for the configs'.
        say (Callable): takes a line of progress.

    Raises:
        LaunchError: if runs failed; the others are done and kept.
        FileExistsError: if something else lies where the data go.
    """
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    make_shapes(out / DATA, shapes)
    pending = [r for r in runs if not _is_done(r, out, iterations)]
    say(
        f'{len(runs)} runs, {len(runs) - len(pending)} of them finished '
        f'before; logs: {out}/runs/*.log'
    )
    failed = list(_run_all(pending, out, jobs, iterations, say))
    if failed:
        raise LaunchError(
            f'{len(failed)} of {len(runs)} runs failed, see '
            + ', '.join(str(_log(run, out)) for run in failed)
            + '; the finished ones are kept, start again for the others'
        )
    records = [
        read_record(_folder(run, out) / RESULT) | {'label': run.label}
        for run in runs
    ]
    compare(records, out / 'tables')
    write_report(records, out)


def _run_all(
    runs: Sequence[Run],
    out: Path,
    jobs: int,
    iterations: int | None,
    say: Callable[[str], None],
) -> Iterator[Run]:
    """Runs several at a time; yields those that fail."""
    start = perf_counter()
    pool = ThreadPoolExecutor(jobs)
    futures = {pool.submit(_run, run, out, iterations): run for run in runs}
    try:
        for done, future in enumerate(as_completed(futures), 1):
            run, code = futures[future], future.result()
            spent = (perf_counter() - start) / 60
            left = spent / done * (len(runs) - done)
            say(
                f'[{done}/{len(runs)}] {run.name}: '
                f'{"failed" if code else "done"}; {spent:.1f} min, about '
                f'{left:.1f} left'
            )
            if code:
                yield run
    finally:
        pool.shutdown(cancel_futures=True)


def _run(run: Run, out: Path, iterations: int | None) -> int:
    """Trains and tests in a process of its own; returns its exit code."""
    command = [
        *(sys.executable, '-m', f'{__package__}.one_run'),
        *(run.config.resolve(), _folder(run, out)),
        *('--seed', str(run.seed), '--options', json.dumps(run.options)),
        *(['--iterations', str(iterations)] if iterations else []),
    ]
    log = _log(run, out)
    log.parent.mkdir(exist_ok=True)
    with log.open('wb') as file:
        process = subprocess.Popen(
            command,
            cwd=out,
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            return process.wait()
        finally:
            process.stdin.close()


def _is_done(run: Run, out: Path, iterations: int | None) -> bool:
    if not (_folder(run, out) / RESULT).is_file():
        return False
    cfg = load_config(str(run.config), run.seed, run.options, iterations)
    return is_done(_folder(run, out), cfg, out / DATA)


def _folder(run: Run, out: Path) -> Path:
    return out / 'runs' / run.name


def _log(run: Run, out: Path) -> Path:
    return out / 'runs' / f'{run.name}.log'

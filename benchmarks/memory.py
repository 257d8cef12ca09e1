"""Peak memory of one candidate, in a process that does nothing else.

As a program (`python -m benchmarks.memory`) it reads what
to measure from its input and writes one line of JSON.
"""

import ctypes
import gc
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import torch

from inline_mm.errors import LaunchError

from .run import (
    OUT_OF_MEMORY,
    Case,
    Options,
    build,
    compiled,
    is_out_of_memory,
    make_inputs,
    make_step,
    memory_cap,
    time_step,
)

SMALL_SIDE = {'models': 64, 'layers': 8}
KILLED = -9
MODULE = 'benchmarks.memory'


def measure_alone(
    kind: str, candidate: str, case: Case, options: Options
) -> dict:
    """Measures a candidate in a fresh process.

    Args:
        kind (str): 'models' or 'layers'.
        candidate (str): its name.
        case (Case): what it is given.
        options (Options): how.

    Returns:
        dict: 'status' ('ok' or 'out of memory'), and where it is ok: 'extra'
        bytes that one pass needs above the weights and the input (gradients
        included), 'weights' bytes, and 'seconds' of that one pass.

    Raises:
        LaunchError: if the process fails.
    """
    job = dict(
        kind=kind,
        candidate=candidate,
        case=asdict(case),
        options=asdict(options),
    )
    done = subprocess.run(
        [sys.executable, '-m', MODULE],
        input=json.dumps(job),
        capture_output=True,
        text=True,
    )
    if done.returncode == KILLED:
        return dict(status=OUT_OF_MEMORY)
    if done.returncode:
        reason = (done.stderr.strip() or 'no message').splitlines()[-1]
        raise LaunchError(
            f'the memory of {candidate} can not be measured: {reason}'
        )
    # The hosts may have printed lines of their own before it.
    return json.loads(done.stdout.splitlines()[-1])


def measure(kind: str, candidate: str, case: Case, options: Options) -> dict:
    """Measures a candidate in this process; see `measure_alone`."""
    torch.set_num_threads(options.threads)
    model = build(kind, candidate, case.shape, options)
    weights = sum(
        t.numel() * t.element_size()
        for t in (*model.parameters(), *model.buffers())
    )
    side = SMALL_SIDE[kind]
    small = replace(case, shape=(1, side, side, *case.shape[3:]))
    # Compiling takes memory of its own, once for each size.
    warm_up = case if options.compile else small
    runnable = compiled(model) if options.compile else model
    with memory_cap(options.device):
        try:
            inputs = make_inputs(kind, warm_up, options.device)
            time_step(make_step(runnable, inputs, warm_up), model, inputs[0])
            model.zero_grad(set_to_none=True)
            inputs = make_inputs(kind, case, options.device)
            step = make_step(runnable, inputs, case)
            gauge = _CpuGauge if options.device == 'cpu' else _GpuGauge
            gauge = gauge(options.device)
            seconds = time_step(step, model, inputs[0])
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return dict(status=OUT_OF_MEMORY)
    return dict(
        status='ok', extra=gauge.growth(), weights=weights, seconds=seconds
    )


class _CpuGauge:
    """Growth of the resident memory's peak since now, Linux only."""

    def __init__(self, device: str) -> None:
        gc.collect()
        # What was freed goes back to the system, lest it be used unseen.
        trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
        if trim is not None:
            trim(0)
        # Sets the peak to what is resident now (proc(5)).
        Path('/proc/self/clear_refs').write_text('5')
        self.start = self._peak()

    def growth(self) -> int:
        return self._peak() - self.start

    @staticmethod
    def _peak() -> int:
        status = Path('/proc/self/status').read_text()
        return int(status.split('VmHWM:')[1].split()[0]) * 1024


class _GpuGauge:
    """Growth of the allocated memory's peak since now."""

    def __init__(self, device: str) -> None:
        gc.collect()
        self.device = device
        torch.cuda.reset_peak_memory_stats(device)
        self.start = torch.cuda.memory_allocated(device)

    def growth(self) -> int:
        return torch.cuda.max_memory_allocated(self.device) - self.start


def main() -> None:
    """Reads the job, writes the result."""
    job = json.load(sys.stdin)
    case = Case(**job['case'])
    case = replace(case, shape=tuple(case.shape))
    options = Options(**job['options'])
    result = measure(job['kind'], job['candidate'], case, options)
    sys.stdout.write('\n' + json.dumps(result) + '\n')


if __name__ == '__main__':
    main()

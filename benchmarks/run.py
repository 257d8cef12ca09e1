"""Timing of several candidates side by side, in one process."""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import torch
from torch import Tensor, nn

from .machine import available_memory
from .models import build_backbone, build_layer

# A case goes on for this long, in rounds of all candidates, so that what
# takes milliseconds is measured often enough.
MIN_SECONDS = 1.0
MAX_ROUNDS = 50
DTYPES = ('float32', 'bfloat16', 'float16')
MODES = ('eval', 'train')
OUT_OF_MEMORY = 'out of memory'


@dataclass(frozen=True)
class Case:
    """What all candidates of a comparison are given.

    Args:
        shape (tuple[int, ...]): of backbones (B, H, W) in pixels, of layers
            (B, H, W, C, heads) in tokens.
        mode (str): 'eval', a forward pass without gradients, or 'train', a
            forward pass and the backward pass of ones. Defaults to 'eval'.
        dtype (str): 'float32', or what autocast computes in. Defaults to
            'float32'.
        repeats (int): rounds at least; 0 leaves the timing to the one pass
            in a process of its own. Defaults to 5.
    """

    shape: tuple[int, ...]
    mode: str = 'eval'
    dtype: str = 'float32'
    repeats: int = 5


@dataclass(frozen=True)
class Section:
    """One comparison.

    Args:
        name (str): of its file.
        title (str): for readers.
        kind (str): 'models', 'layers' or 'profile' (of models).
        candidates (tuple[str, ...]): what `build_backbone` or `build_layer`
            takes.
        cases (tuple[Case, ...]): what they are given.
        baseline (str): candidate that the others are compared with.
        memory (bool): measure the peak memory as well. Defaults to False.
    """

    name: str
    title: str
    kind: str
    candidates: tuple[str, ...]
    cases: tuple[Case, ...]
    baseline: str
    memory: bool = False


@dataclass(frozen=True)
class Options:
    """How everything of a call is measured.

    Args:
        device (str): 'cpu', 'cuda' or 'cuda:1'. Defaults to 'cpu'.
        threads (int): of the CPU. Defaults to 1.
        compile (bool): measure `torch.compile` of each candidate. Defaults
            to False.
        with_cp (bool): recompute activations in the backward pass. Defaults
            to False.
        quick (bool): small sizes stand for those of a claim. Defaults to
            False.
    """

    device: str = 'cpu'
    threads: int = 1
    compile: bool = False
    with_cp: bool = False
    quick: bool = False


def build(
    kind: str, name: str, shape: tuple[int, ...], options: Options
) -> nn.Module:
    """Builds a candidate on its device, the same weights at each call."""
    torch.manual_seed(0)
    if kind == 'layers':
        model = build_layer(name, *shape[3:])
    else:
        model = build_backbone(name, options.with_cp)
    return model.to(options.device)


def compiled(model: nn.Module) -> nn.Module:
    """`torch.compile` for inputs of one size."""
    return torch.compile(model, dynamic=False)


def make_inputs(kind: str, case: Case, device: str) -> tuple:
    """Random inputs of a candidate; those of layers want a gradient."""
    torch.manual_seed(0)
    batch, height, width = case.shape[:3]
    if kind != 'layers':
        return (torch.randn(batch, 3, height, width, device=device),)
    tokens = torch.randn(batch, height * width, case.shape[3], device=device)
    return tokens.requires_grad_(case.mode == 'train'), (height, width)


def make_step(
    model: nn.Module, inputs: tuple, case: Case
) -> Callable[[], None]:
    """One pass of a candidate as a function without arguments."""
    training = case.mode == 'train'
    model.train(training)
    autocast = torch.autocast(
        inputs[0].device.type,
        getattr(torch, case.dtype),
        enabled=case.dtype != 'float32',
    )

    def step() -> None:
        with torch.set_grad_enabled(training), autocast:
            outputs = model(*inputs)
        if training:
            if isinstance(outputs, Tensor):
                outputs = (outputs,)
            ones = [torch.ones_like(out) for out in outputs]
            torch.autograd.backward(outputs, ones)

    return step


def time_step(step: Callable[[], None], model: nn.Module, x: Tensor) -> float:
    """Seconds of one pass, gradients fresh."""
    model.zero_grad(set_to_none=True)
    x.grad = None
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
    start = time.perf_counter()
    step()
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
    return time.perf_counter() - start


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out."""
    words = ('not enough memory', "can't allocate memory", 'bad_alloc')
    return isinstance(
        error, (MemoryError, torch.cuda.OutOfMemoryError)
    ) or any(word in str(error) for word in words)


@contextmanager
def memory_cap(device: str) -> Iterator[None]:
    """Makes allocations fail where the system would kill the process.

    The cap is nine tenths of the memory that is free at the start; none on
    GPUs, whose drivers reserve address space, and where /proc is missing.
    """
    free = available_memory()
    if device != 'cpu' or not free:
        yield
        return
    status = Path('/proc/self/status').read_text()
    held = int(status.split('VmData:')[1].split()[0]) * 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    cap = held + free * 9 // 10
    if hard != resource.RLIM_INFINITY:
        cap = min(cap, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def time_case(
    kind: str,
    case: Case,
    models: dict[str, nn.Module],
    options: Options,
    rows: dict[str, dict],
    say: Callable[[str], None],
) -> None:
    """Times all candidates of a case, round after round.

    Args:
        kind (str): 'models' or 'layers'.
        case (Case): what they are given.
        models (dict[str, nn.Module]): candidates by name.
        options (Options): how.
        rows (dict[str, dict]): by name; 'seconds' grows with each round, so
            that an interruption leaves what is there, and 'status' changes
            where memory runs out.
        say (callable): takes a line about what is being done.
    """
    inputs = make_inputs(kind, case, options.device)
    steps = {}
    torch._dynamo.reset()
    for name, model in models.items():
        say(f'{name}: warm-up')
        runnable = compiled(model) if options.compile else model
        step = make_step(runnable, inputs, case)
        try:
            time_step(step, model, inputs[0])
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            rows[name]['status'] = OUT_OF_MEMORY
        else:
            steps[name] = step
    start = time.perf_counter()
    rounds = 0
    while steps and rounds < max(case.repeats, MAX_ROUNDS):
        if rounds >= case.repeats and (
            time.perf_counter() - start > MIN_SECONDS
        ):
            break
        rounds += 1
        for name, step in steps.items():
            if rounds <= case.repeats:
                say(f'{name}: round {rounds} of {case.repeats}')
            seconds = time_step(step, models[name], inputs[0])
            rows[name]['seconds'].append(seconds)


def summarize(seconds: list[float]) -> dict:
    """Median and quartiles, all None where nothing was measured."""
    if not seconds:
        return dict(median=None, q1=None, q3=None)
    if len(seconds) == 1:
        return dict(median=seconds[0], q1=seconds[0], q3=seconds[0])
    q1, _, q3 = quantiles(seconds, n=4, method='inclusive')
    return dict(median=median(seconds), q1=q1, q3=q3)

"""The commands of python -m benchmarks: from arguments to sections."""

import sys
from argparse import Namespace

from rich.console import Console

from inline_mm.errors import LaunchError

from .preset import goal_sections
from .report import console_goals, write_report
from .run import DTYPES, MODES, Case, Options, Section
from .sections import check, read_records, run_sections


def models(args: Namespace) -> None:
    """Compares backbones."""
    shapes = []
    for size in args.sizes:
        sides = _numbers('--sizes', size, 'x', 'SIDE or HEIGHTxWIDTH', (1, 2))
        shapes += [(batch, sides[0], sides[-1]) for batch in args.batches]
    if min(args.batches) < 1:
        raise LaunchError(f'--batches must be 1 or more: {min(args.batches)}')
    _compare(args, shapes, 'Backbones', args.with_cp)


def layers(args: Namespace) -> None:
    """Compares attention layers."""
    shapes = [
        _numbers('a layer', size, ',', 'B,H,W,C,HEADS', (5,))
        for size in args.sizes
    ]
    _compare(args, shapes, 'Attention layers')


def goals(args: Namespace) -> None:
    """Measures all that is claimed, or what is missing of it."""
    _check_choices('--dtype', [args.dtype], DTYPES)
    on_gpu = args.device != 'cpu'
    sections = goal_sections(args.dtype, args.quick, softmax=on_gpu)
    if args.sections:
        names = [section.name for section in sections]
        _check_choices('--sections', args.sections, names)
        sections = [s for s in sections if s.name in args.sections]
    options = Options(args.device, args.threads, quick=args.quick)
    console = _console()
    check(sections, options, args.out)
    run_sections(sections, options, args.out, console, not args.sections)
    console.print(console_goals(read_records(args.out)))


def report(args: Namespace) -> None:
    """Writes performance.md."""
    if args.docs.exists() and not args.docs.is_dir():
        raise LaunchError(f'{args.docs} is a file, expected a folder')
    for path in write_report(read_records(args.results), args.docs):
        _console().print(f'wrote {path}')


def _compare(
    args: Namespace,
    shapes: list[tuple[int, ...]],
    title: str,
    with_cp: bool = False,
) -> None:
    _check_choices('--modes', args.modes, MODES)
    _check_choices('--dtypes', args.dtypes, DTYPES)
    if args.repeats < 1:
        raise LaunchError(f'--repeats must be 1 or more: {args.repeats}')
    section = Section(
        args.command,
        title,
        args.command,
        tuple(dict.fromkeys(args.candidates)),
        tuple(
            Case(shape, mode, dtype, args.repeats)
            for dtype in args.dtypes
            for mode in args.modes
            for shape in shapes
        ),
        args.baseline or args.candidates[-1],
        memory=not args.skip_memory,
    )
    options = Options(args.device, args.threads, args.compile, with_cp)
    check([section], options, args.out)
    run_sections([section], options, args.out, _console())


def _console() -> Console:
    # As wide as its tables where nobody looks.
    width = None if sys.stdout.isatty() else 160
    return Console(file=sys.stdout, highlight=False, width=width)


def _numbers(
    what: str, text: str, separator: str, form: str, counts: tuple[int, ...]
) -> tuple[int, ...]:
    parts = text.split(separator)
    if len(parts) not in counts or not all(
        part.isdecimal() and int(part) for part in parts
    ):
        raise LaunchError(f'{what} must be {form}, got {text!r}')
    return tuple(map(int, parts))


def _check_choices(what: str, given: list[str], choices) -> None:
    for value in given:
        if value not in choices:
            raise LaunchError(
                f'{what} must be of {", ".join(choices)}, got {value!r}'
            )

"""Measuring section after section, and keeping what was measured."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import torch
from rich.console import Console

from inline_mm.checkpoint.writing import write_atomically
from inline_mm.errors import LaunchError

from .figure import draw_scaling
from .machine import describe_machine, load_average
from .memory import measure_alone
from .models import short_name
from .profile import profile_model
from .run import (
    Case,
    Options,
    Section,
    build,
    memory_cap,
    summarize,
    time_case,
)
from .tables import console_table, describe_case, section_page

SCHEMA = 1
FOLDER = 'sections'


def check(sections: Iterable[Section], options: Options, out: Path) -> None:
    """Refuses, before anything is measured, what can't be.

    Raises:
        LaunchError: if the device isn't there, a number makes no sense, a
            candidate doesn't exist, or `out` is no folder.
    """
    if options.threads < 1:
        raise LaunchError(f'--threads must be 1 or more: {options.threads}')
    try:
        torch.empty(1, device=options.device)
    except (AssertionError, RuntimeError):
        raise LaunchError(
            f'--device {options.device} is not there; expected cpu, or cuda '
            'where a GPU is seen'
        ) from None
    if out.exists() and not out.is_dir():
        raise LaunchError(f'--out {out} is a file, expected a folder')
    for section in sections:
        if section.baseline not in section.candidates:
            raise LaunchError(
                f'--baseline {section.baseline} is none of the candidates '
                f'{", ".join(section.candidates)}'
            )
        for name in dict.fromkeys(section.candidates):
            build(section.kind, name, section.cases[0].shape, options)


def run_sections(
    sections: list[Section],
    options: Options,
    out: Path,
    console: Console,
    keep: bool = False,
) -> list[dict]:
    """Measures sections; each is written as it ends, all at the end.

    Args:
        sections (list[Section]): what to measure.
        options (Options): how.
        out (Path): folder for `sections/NAME.json`, tables and figures.
        console (Console): for progress and tables.
        keep (bool): leave alone what is there already, complete and measured
            with the same code, machine and options. Defaults to False.

    Returns:
        list[dict]: a record of each.

    Raises:
        KeyboardInterrupt: after what was measured has been written.
    """
    torch.set_num_threads(options.threads)
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    machine = describe_machine(options.device)
    records = []
    try:
        for number, section in enumerate(sections, 1):
            path = out / FOLDER / f'{section.name}.json'
            head = _head(section, options, machine)
            console.print(f'[{number}/{len(sections)}] {section.title}')
            record = _reusable(path, head) if keep else None
            if record is not None:
                console.print('  measured before')
                records.append(record)
                continue
            record = dict(head, rows=_empty_rows(section))
            records.append(record)
            try:
                _measure(section, options, record, console)
            finally:
                # Also when interrupted: what is there is kept.
                if any(has_result(row) for row in record['rows']):
                    write_json(path, record)
                else:
                    records.pop()
            console.print(console_table(record))
    finally:
        if records:
            _write_outputs(out, records)
            console.print(f'Tables and figures: {out}')
    return records


def _head(section: Section, options: Options, machine: dict) -> dict:
    """All of a record that is known before the measuring."""
    head = dict(
        schema=SCHEMA,
        **asdict(section),
        options=asdict(options),
        machine=machine,
    )
    return json.loads(json.dumps(head))


def _reusable(path: Path, head: dict) -> dict | None:
    """An earlier record of the same, if it is complete."""
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding='utf-8'))
    same = all(record.get(key) == value for key, value in head.items())
    return record if same and record.get('complete') else None


def _empty_rows(section: Section) -> list[dict]:
    return [
        dict(
            candidate=name,
            shape=list(case.shape),
            mode=case.mode,
            dtype=case.dtype,
            status='ok',
            seconds=[],
            **summarize([]),
            memory=None,
            profile=None,
        )
        for case in section.cases
        for name in section.candidates
    ]


def has_result(row: dict) -> bool:
    """Whether anything was found out about a row."""
    return bool(row['seconds'] or row['memory'] or row['profile'])


def _measure(
    section: Section, options: Options, record: dict, console: Console
) -> None:
    record.update(
        date=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        load=[load_average()],
        complete=False,
    )
    start = time.perf_counter()
    with console.status('') as status:
        for index, case in enumerate(section.cases):
            count = len(section.candidates)
            rows = record['rows'][index * count : (index + 1) * count]
            rows = {row['candidate']: row for row in rows}
            about = describe_case(section.kind, rows[section.baseline])

            def say(text, about=about):
                status.update(f'{section.name}, {about}: {text}')

            try:
                _measure_case(section, case, options, rows, say)
            except LaunchError:
                raise
            except (AssertionError, RuntimeError, TypeError, ValueError) as e:
                reason = (str(e) or type(e).__name__).splitlines()[0]
                raise LaunchError(f'{about} fails: {reason}') from e
            finally:
                for row in rows.values():
                    row.update(summarize(row['seconds']))
            console.print(f'  {about}: {_describe_rows(rows)}')
    record.update(
        load=[*record['load'], load_average()],
        duration=round(time.perf_counter() - start, 1),
        complete=True,
    )


def _measure_case(
    section: Section,
    case: Case,
    options: Options,
    rows: dict[str, dict],
    say: Callable[[str], None],
) -> None:
    if section.kind == 'profile' or case.repeats:
        models = {
            name: build(section.kind, name, case.shape, options)
            for name in rows
        }
        if section.kind == 'profile':
            for name, model in models.items():
                say(name)
                rows[name]['profile'] = profile_model(model, case, options)
        else:
            with memory_cap(options.device):
                time_case(section.kind, case, models, options, rows, say)
    if not section.memory:
        return
    for name, row in rows.items():
        say(f'{name}: memory, in a process of its own')
        result = measure_alone(section.kind, name, case, options)
        row['memory'] = result
        if result['status'] != 'ok':
            row['status'] = result['status']
        elif not case.repeats:
            row['seconds'] = [result['seconds']]


def _describe_rows(rows: dict[str, dict]) -> str:
    parts = []
    for name, row in rows.items():
        value = row['median']
        if row['profile'] is not None:
            value = row['profile']['total']
        text = row['status'] if value is None else f'{1000 * value:.1f} ms'
        parts.append(f'{short_name(name)} {text}')
    return ', '.join(parts)


def write_json(path: Path, value) -> None:
    """Writes JSON, all or nothing."""
    text = json.dumps(value, indent=1, allow_nan=False) + '\n'
    write_atomically(path, text.encode())


def _write_outputs(out: Path, measured: list[dict]) -> None:
    """Writes the tables of a folder's sections, and a figure for each."""
    records = list(read_records(out).values())
    write_json(out / 'results.json', records)
    page = '\n\n'.join(['# Benchmark', *map(section_page, records)])
    write_atomically(out / 'results.md', f'{page}\n'.encode())
    for record in measured:
        if record['kind'] != 'profile':
            draw_scaling(record, out / f'{record["name"]}.png')


def read_records(folder: Path) -> dict[str, dict]:
    """The sections that a folder holds, by name.

    Raises:
        LaunchError: if it holds none, or one that this version doesn't know.
    """
    records = {}
    for path in sorted((folder / FOLDER).glob('*.json')):
        try:
            record = json.loads(path.read_text(encoding='utf-8'))
            known = record['schema'] == SCHEMA
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            raise LaunchError(
                f'{path} is no result of this version; measure anew'
            )
        records[record['name']] = record
    if not records:
        raise LaunchError(
            f'{folder} holds no results; expected the --out folder of '
            '`python -m benchmarks goals`'
        )
    return records

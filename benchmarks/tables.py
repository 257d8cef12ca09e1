"""Measured sections as tables, for the console and as Markdown."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from .models import short_name

MISSING = '-'


def describe_case(kind: str, row: dict) -> str:
    """What a row was given, in short."""
    size = 'x'.join(map(str, row['shape'][:3]))
    if kind == 'layers':
        size += ', C {}, heads {}'.format(*row['shape'][3:])
    return f'{size}, {row["dtype"]}, {row["mode"]}'


def same_case(row: dict, other: dict) -> bool:
    """Whether two rows were given the same."""
    return all(row[key] == other[key] for key in ('shape', 'mode', 'dtype'))


def find_row(record: dict, candidate: str, like: dict) -> dict:
    """The row of another candidate in the case of `like`."""
    return next(
        row
        for row in record['rows']
        if row['candidate'] == candidate and same_case(row, like)
    )


def milliseconds(seconds: float | None) -> str:
    """With three digits, or as many as there are before the point."""
    if seconds is None:
        return MISSING
    value = 1000 * seconds
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f'{value:.{digits}f}'


def megabytes(count: int | None) -> str:
    """10^6 bytes."""
    return MISSING if count is None else f'{count / 1e6:.0f}'


def ratio(numerator: float | None, denominator: float | None) -> str:
    """A quotient, where there is one."""
    if not numerator or not denominator:
        return MISSING
    return f'{numerator / denominator:.2f}'


def extra_memory(row: dict) -> int | None:
    """Bytes above weights and input, if they were measured."""
    return row['memory'] and row['memory'].get('extra')


def headers(record: dict) -> list[str]:
    """Titles of the columns."""
    if record['kind'] == 'profile':
        return ['operator', 'self ms', 'share', 'calls']
    base = short_name(record['baseline'])
    titles = [
        'candidate',
        'B x H x W, dtype, mode',
        'median ms',
        'quartiles ms',
        'rounds',
        f'{base} / this',
    ]
    if record['memory']:
        titles += ['extra MB', f'this / {base}', 'weights MB']
    return titles


def table_rows(record: dict) -> Iterable[list[str]]:
    """Cells, row by row, of what was measured or ran out of memory."""
    for row in record['rows']:
        if not row['seconds'] and row['status'] == 'ok':
            continue
        base = find_row(record, record['baseline'], row)
        status = row['status'] if row['status'] != 'ok' else None
        cells = [
            short_name(row['candidate']),
            describe_case(record['kind'], row),
            status or milliseconds(row['median']),
            f'{milliseconds(row["q1"])} to {milliseconds(row["q3"])}',
            str(len(row['seconds'])),
            ratio(base['median'], row['median']),
        ]
        if record['memory']:
            extra = extra_memory(row)
            cells += [
                megabytes(extra),
                ratio(extra, extra_memory(base)),
                megabytes(row['memory'] and row['memory'].get('weights')),
            ]
        yield cells


def profile_rows(profile: dict) -> Iterable[list[str]]:
    """Cells of a profile's operators, the longest first."""
    for operator in profile['operators']:
        share = operator['seconds'] / profile['total']
        yield [
            operator['name'],
            milliseconds(operator['seconds']),
            f'{100 * share:.0f} %',
            str(operator['calls']),
        ]


def console_table(record: dict) -> Table:
    """A record as a rich table; of a profile, the first operators."""
    table = Table(title=record['title'], title_justify='left')
    for number, title in enumerate(headers(record)):
        table.add_column(title, justify='right' if number > 1 else 'left')
    if record['kind'] == 'profile':
        for row in record['rows']:
            if row['profile']:
                table.add_section()
                table.add_row(short_name(row['candidate']))
                for cells in profile_rows(row['profile']):
                    table.add_row(*cells)
        return table
    for cells in table_rows(record):
        table.add_row(*cells)
    return table


def markdown_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """A Markdown table."""
    lines = [titles, ['---'] * len(titles), *rows]
    return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)


def describe_conditions(record: dict) -> str:
    """One paragraph: how and when a record was measured."""
    options = record['options']
    before, *after = record['load']
    load = f'{before[0]:.2f}'
    if after:
        load += f' before and {after[0][0]:.2f} after'
    extras = [
        text
        for key, text in (
            ('compile', 'torch.compile'),
            ('with_cp', 'activation checkpoints'),
        )
        if options[key]
    ]
    incomplete = '' if record['complete'] else ' **Interrupted.**'
    return (
        f'Measured {record["date"]} on {options["device"]}, '
        f'{options["threads"]} CPU thread(s), load average {load}'
        f'{"".join(f", {text}" for text in extras)}.{incomplete}'
    )


def describe_machine_lines(machine: dict) -> list[str]:
    """The machine as Markdown bullets."""
    tf32 = machine['tf32']
    versions = ', '.join(f'{k} {v}' for k, v in machine['versions'].items())
    lines = [
        f'- CPU: {machine["cpu"]} ({machine["cpu_capability"]}), '
        f'{machine["cores"]} cores, {machine["memory_gb"]:.0f} GB',
        f'- GPU: {machine["gpu"] or "none"}',
        f'- {versions}; {machine["system"]}; code {machine["code"]}',
        f'- TF32: matmul {_on(tf32["matmul"])}, cudnn {_on(tf32["cudnn"])}, '
        f'float32_matmul_precision {tf32["float32_matmul_precision"]!r} '
        '(for GPUs)',
    ]
    return lines


def _on(state: bool) -> str:
    return 'on' if state else 'off'


def section_page(record: dict, level: int = 2) -> str:
    """A record as Markdown, with heading, conditions and machine."""
    return '\n\n'.join(
        [
            f'{"#" * level} {record["title"]}',
            '\n'.join(describe_machine_lines(record['machine'])),
            section_body(record),
        ]
    )


def section_body(record: dict) -> str:
    """A record's conditions and tables as Markdown."""
    parts = [describe_conditions(record)]
    if record['kind'] != 'profile':
        return '\n\n'.join(
            [*parts, markdown_table(headers(record), table_rows(record))]
        )
    for row in record['rows']:
        profile = row['profile']
        if profile:
            parts += [
                f'{short_name(row["candidate"])}, '
                f'{describe_case(record["kind"], row)}: '
                f'{milliseconds(profile["total"])} ms in all, '
                f'{milliseconds(profile["products"])} of them in matrix '
                'products',
                markdown_table(headers(record), profile_rows(profile)),
            ]
    return '\n\n'.join(parts)

"""Tables of a comparison for the terminal, as Markdown and as CSV."""

import csv
from io import StringIO

from rich import box
from rich.table import Table

from .facts import describe_differences
from .table import (
    HEADINGS,
    MAIN,
    TITLES,
    Section,
    show,
    show_cell,
    show_number,
)

COSTS = ('runs', 'M params', 'G FLOPs', 'ms')
ROOM = 100  # characters that the costs need beside a config's name


def markdown(lines: list[list[str]]) -> str:
    """A table in Markdown, its headings first."""
    head, *rows = [
        [cell.replace('|', r'\|') for cell in line] for line in lines
    ]
    text = [f'| {" | ".join(line)} |' for line in rows]
    rule = f'| {" | ".join("---" for _ in head)} |'
    return '\n'.join([f'| {" | ".join(head)} |', rule, *text])


def console_table(section: Section, width: int) -> Table:
    """The main scores, and what they cost where there is room for it.

    Args:
        section (Section): the rows of a task.
        width (int): characters in a line of the terminal.

    Returns:
        Table: to be printed by rich.
    """
    scores = MAIN[section.task]
    costs = COSTS if width >= ROOM else COSTS[:1]
    table = Table(
        title=TITLES[section.task],
        title_justify='left',
        box=box.SIMPLE_HEAD,
        padding=0,
    )
    table.add_column('#')
    table.add_column('run', overflow='fold')
    for heading in (*(HEADINGS[name] for name in scores), *costs):
        table.add_column(heading, justify='right', no_wrap=True)
    for number, row in enumerate(section.rows, 1):
        cells = (
            '' if row.published else str(row.runs),
            show_number(row.params, 1),
            show_number(row.flops, 1),
            show_number(row.latency, 1),
        )
        table.add_row(
            str(number),
            f'{row.label} (published)' if row.published else row.label,
            *(show_cell(row, name) for name in scores),
            *cells[: len(costs)],
        )
    return table


def describe_published(section: Section) -> list[str]:
    """Measured against published, a line for each row."""
    lines: dict[str, list[str]] = {}
    for diff in section.differences:
        lines.setdefault(diff.label, []).append(
            f'{HEADINGS[diff.score]} {show(diff.measured)}, published '
            f'{diff.published:g} ({diff.measured.mean - diff.published:+.2f})'
        )
    found = [f'{label}: {"; ".join(said)}.' for label, said in lines.items()]
    return [*found, *section.about_published(), *section.silent]


def section_markdown(section: Section) -> str:
    """All text of a task in Markdown."""
    parts = [f'## {TITLES[section.task]}', markdown(section.table())]
    if section.remarks():
        parts.append('\n'.join(f'- {line}' for line in section.remarks()))
    parts += ['### Training and cost', markdown(section.costs())]
    if section.sizes():
        parts += ['### By size of the objects', markdown(section.sizes())]
    if section.differences or section.silent:
        parts.append('### Yours against the published numbers')
    if section.differences:
        parts.append(markdown(section.against_published()))
    notes = [*section.about_published(), *section.silent]
    if notes:
        parts.append('\n'.join(f'- {line}' for line in notes))
    if section.sources():
        parts.append('### Sources of the published numbers')
        parts.append('\n'.join(f'- {line}' for line in section.sources()))
    return '\n\n'.join(parts)


def rows_csv(sections: list[Section]) -> str:
    """Every row of every task with all that is known; unknown cells empty."""
    abouts = {a: None for s in sections for row in s.rows for a in row.facts}
    for about in ('method', 'FLOPs'):  # have columns of their own
        abouts.pop(about, None)
    heads = ['task', 'run', 'measured by', 'config', 'method', 'backbone']
    heads += [h for n in HEADINGS for h in (n, f'{n}_std', f'{n}_runs')]
    heads += ['runs', 'seeds', 'params_M', 'flops_G', 'flops_input']
    heads += ['latency_ms', *(f'{about} (text)' for about in abouts)]
    heads += ['differs from the first row', 'source']
    lines = [heads]
    for section in sections:
        for row in section.rows:
            scores = [row.scores.get(name) for name in HEADINGS]
            lines.append(
                [
                    section.task,
                    row.label,
                    'others' if row.published else 'you',
                    row.config,
                    row.names.get('method'),
                    row.names.get('backbone'),
                    *(
                        cell
                        for s in scores
                        for cell in (
                            (s.mean, s.std, s.runs) if s else [''] * 3
                        )
                    ),
                    '' if row.published else row.runs,
                    ' '.join(map(str, row.seeds)),
                    *(row.params, row.flops, row.flops_input, row.latency),
                    *(
                        fact.words if (fact := row.facts.get(about)) else ''
                        for about in abouts
                    ),
                    '; '.join(describe_differences(row, section.rows[0])),
                    '; '.join({s['text']: 0 for s in row.sources.values()}),
                ]
            )
    return _csv(lines)


def classes_csv(sections: list[Section]) -> str:
    """Scores of each class, a line for each row, metric and class."""
    lines = [['task', 'run', 'score', 'class', 'percent']]
    lines += [
        [section.task, row.label, metric, name, round(value, 4)]
        for section in sections
        for row in section.measured
        for metric, values in row.per_class.items()
        for name, value in values.items()
    ]
    return _csv(lines)


def _csv(lines: list[list]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator='\n').writerows(lines)
    return text.getvalue()

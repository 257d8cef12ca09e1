"""The page of a comparison: one HTML file that needs no other."""

from base64 import b64encode
from datetime import datetime, timezone
from html import escape

from .curves import Curves
from .figures import (
    MOST_CLASSES,
    draw_classes,
    draw_costs,
    draw_curves,
    has_other_costs,
)
from .table import COUNTED, MISSING, SPREAD, TITLES, Section

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c;
  background: #fff; margin: 2rem auto; max-width: 76rem; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 2px solid #0072b2;
  padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin-top: 1.8rem; }
p, li { max-width: 62rem; }
.about { color: #555; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; margin: .8rem 0; }
th { background: #f0f3f6; text-align: right; vertical-align: bottom; }
td { text-align: right; white-space: nowrap; }
th, td { padding: .35rem .65rem; border-bottom: 1px solid #d8dde2; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
td:nth-child(2) { white-space: normal; overflow-wrap: anywhere;
  min-width: 13rem; }
td.none { color: #9a9a9a; }
tr.published td { color: #555; font-style: italic; }
ul { padding-left: 1.2rem; }
figure { margin: 1rem 0; break-inside: avoid; }
figure img { max-width: 100%; height: auto; }
figcaption { font-size: .87rem; color: #555; }
.classes { display: flex; flex-wrap: wrap; gap: 1rem; }
.classes figure { flex: 1 1 28rem; max-width: 38rem; }
@page { size: A4 landscape; margin: 12mm; }
@media print { body { margin: 0; max-width: none; font-size: 11px; }
  .wide { overflow: visible; } table { font-size: 8px; }
  th, td { padding: .15rem .3rem; } td:nth-child(2) { min-width: 7rem; }
  tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""


def make_page(
    sections: list[Section], curves: dict[str, list[tuple[str, int, Curves]]]
) -> str:
    """The page.

    Args:
        sections (list[Section]): one for each task.
        curves (dict[str, list[tuple[str, int, Curves]]]): by task, as
            :func:`~.figures.draw_curves` takes them.

    Returns:
        str: HTML with everything in it.
    """
    date = datetime.now(timezone.utc).strftime('%Y-%m-%d %H:%M UTC')
    parts = [
        '<!DOCTYPE html>',
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        '<title>Comparison of backbones</title>',
        f'<style>{STYLE}</style></head><body>',
        '<h1>Comparison of backbones</h1>',
        f'<p class="about">{date}. Row 1 of each table is what the other '
        f'rows are compared with. {escape(SPREAD)} {escape(COUNTED)}</p>',
    ]
    for section in sections:
        parts += _section(section, curves.get(section.task, []))
    return '\n'.join([*parts, '</body></html>']) + '\n'


def _section(
    section: Section, curves: list[tuple[str, int, Curves]]
) -> list[str]:
    parts = [f'<h2>{TITLES[section.task]}</h2>']
    if section.rows:
        published = {
            number for number, row in enumerate(section.rows) if row.published
        }
        parts += [_table(section.table(), published)]
        parts += _list(section.remarks())
        parts += ['<h3>Training and cost</h3>']
        parts += [_table(section.costs(), published), *_costs(section)]
    if section.sizes():
        parts += ['<h3>By size of the objects</h3>', _table(section.sizes())]
    if section.differences or section.silent:
        parts.append('<h3>Yours against the published numbers</h3>')
    if section.differences:
        parts.append(_table(section.against_published()))
    parts += _list([*section.about_published(), *section.silent])
    parts += _classes(section)
    drawn = draw_curves(section, curves)
    if drawn:
        words = _CURVES + _without_logs(section, curves)
        parts += ['<h3>Training</h3>', _figure(drawn, words)]
    if section.sources():
        parts.append('<h3>Sources of the published numbers</h3>')
        parts += _list(section.sources())
    return parts


_CURVES = (
    'Loss and validated score of each run, all of its starts together; runs '
    'of one row share a colour.'
)


def _without_logs(
    section: Section, curves: list[tuple[str, int, Curves]]
) -> str:
    drawn = {number for _, number, _ in curves}
    missing = [
        str(number + 1)
        for number in range(len(section.measured))
        if number not in drawn
    ]
    if not missing:
        return ''
    return f' No log was found beside the weights of row {", ".join(missing)}.'


def _costs(section: Section) -> list[str]:
    drawn = draw_costs(section)
    if drawn is None:
        return []
    words = 'What accuracy costs. Numbers are those of the rows.'
    if has_other_costs(section):
        words += (
            ' Hollow points were counted or timed on another input or device '
            'than row 1: their distance to it means nothing along that axis.'
        )
    if any(
        row.published and row.benchmark != section.rows[0].benchmark
        for row in section.rows
    ):
        words += ' Published scores on another test set are not drawn.'
    return [_figure(drawn, words)]


def _classes(section: Section) -> list[str]:
    figures = [
        _figure(drawn, f'{row.label} minus {section.measured[0].label}')
        for row in section.measured[1:]
        if (drawn := draw_classes(section, row))
    ]
    if not figures:
        return []
    return [
        '<h3>By class</h3>',
        '<p>Left out are classes that one of both has no value for, and of '
        f'more than {MOST_CLASSES} those in the middle; per_class.csv has '
        'all.</p>',
        '<div class="classes">',
        *figures,
        '</div>',
    ]


def _table(lines: list[list[str]], published: set[int] = frozenset()) -> str:
    head = ''.join(f'<th>{escape(cell)}</th>' for cell in lines[0])
    rows = []
    for number, line in enumerate(lines[1:]):
        kind = ' class="published"' if number in published else ''
        cells = ''.join(
            f'<td class="none">{cell}</td>'
            if cell == MISSING
            else f'<td>{escape(cell)}</td>'
            for cell in line
        )
        rows.append(f'<tr{kind}>{cells}</tr>')
    return '\n'.join(
        [
            '<div class="wide"><table>',
            f'<thead><tr>{head}</tr></thead><tbody>',
            *rows,
            '</tbody></table></div>',
        ]
    )


def _list(lines: list[str]) -> list[str]:
    if not lines:
        return []
    return ['<ul>', *(f'<li>{escape(line)}</li>' for line in lines), '</ul>']


def _figure(png: bytes, caption: str) -> str:
    data = b64encode(png).decode()
    words = f'<figcaption>{escape(caption)}</figcaption>' if caption else ''
    return (
        f'<figure><img alt="{escape(caption)}" '
        f'src="data:image/png;base64,{data}">{words}</figure>'
    )

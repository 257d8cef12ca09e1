"""Figures of a comparison, as PNG files in memory."""

from collections.abc import Callable
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .curves import Curves
from .facts import describe_differences
from .rows import Row
from .table import HEADINGS, MAIN, Section

COLORS = (
    '#0072b2',
    '#d55e00',
    '#009e73',
    '#cc79a7',
    '#e69f00',
    '#56b4e9',
    '#7f4f24',
    '#444444',
)
# Published points, by the beginning of the backbone's name.
FAMILIES = {
    'InLine-': ('InLine, published', '#0072b2', 'D'),
    'Swin-': ('Swin, published', '#7a7a7a', 's'),
    'PVT-': ('PVT, published', '#7a7a7a', '^'),
    'CSwin-': ('CSwin, published', '#7a7a7a', 'v'),
    'DeiT-': ('DeiT, published', '#7a7a7a', 'p'),
}
MOST_CLASSES = 30
WIDE = 20  # costs further apart are drawn on a logarithmic axis
DPI = 130


def color(number: int) -> str:
    """Colour of a measured row, by its number from 0."""
    return COLORS[number % len(COLORS)]


def draw_costs(section: Section) -> bytes | None:
    """The main score against FLOPs, parameters and latency.

    Args:
        section (Section): the rows of a task.

    Returns:
        bytes | None: a PNG; None if no row has a score and a cost.
    """
    name = main_score(section)
    costs: list[tuple[str, str, Callable[[Row], float | None]]] = [
        ('FLOPs', 'FLOPs, G (multiply-adds)', lambda row: row.flops),
        ('params', 'parameters, M', lambda row: row.params),
        ('latency', 'ms / image', lambda row: row.latency),
    ]
    drawn = [
        (number, row)
        for number, row in enumerate(section.rows)
        if any(cost(row) is not None for *_, cost in costs)
        # Scores on another test set have no place on this axis.
        and name in row.scores
        and not (row.published and row.benchmark != section.rows[0].benchmark)
    ]
    panels = []
    for about, label, cost in costs:
        rows = [
            (number, row, cost(row))
            for number, row in drawn
            if cost(row) is not None
        ]
        if rows:
            panels.append((about, label, rows))
    if not panels:
        return None
    fig = Figure(figsize=(4.6 * len(panels), 4.4), layout='constrained')
    axes = fig.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (about, label, rows) in zip(axes, panels, strict=True):
        first = section.rows[0].facts.get(about)
        for number, row, x in rows:
            other = row.facts.get(about)
            same = not (first and other and first.differs(other))
            _draw_point(axis, number, row, x, row.scores[name], same)
        _style(axis, label, '')
        axis.margins(0.12)
        lowest, highest = min(x for *_, x in rows), max(x for *_, x in rows)
        if lowest > 0 and highest > WIDE * lowest:
            axis.set_xscale('log')
    axes[0].set_ylabel(f'{HEADINGS[name]}, %')
    _add_legend(fig, [_legend_of(n, row) for n, row in drawn])
    return _png(fig)


def main_score(section: Section) -> str:
    """The score that a task's figures show: of boxes, or else of masks."""
    for name in MAIN[section.task]:
        if any(name in row.scores for row in section.measured):
            return name
    return MAIN[section.task][0]


def _draw_point(axis: Axes, number: int, row: Row, x, score, same) -> None:
    """A row; hollow where its cost was counted or timed differently."""
    _, shade, marker = _look(number, row)
    text = str(number + 1)
    if row.published:
        text = row.names['backbone'].split('-', 1)[-1]
    axis.errorbar(
        [x],
        [score.mean],
        yerr=None if score.std is None else [score.std],
        fmt=marker,
        markersize=5 if row.published else 8,
        markerfacecolor=shade if same else 'white',
        color=shade,
        capsize=3,
        zorder=2 if row.published else 3,
    )
    axis.annotate(
        text,
        (x, score.mean),
        xytext=(5, 4),
        textcoords='offset points',
        fontsize=6 if row.published else 9,
        color=shade,
    )


def _look(number: int, row: Row) -> tuple[str, str, str]:
    """Name, colour and marker of a row."""
    if not row.published:
        return f'{number + 1}  {row.label}', color(number), 'o'
    return next(
        style
        for prefix, style in FAMILIES.items()
        if row.names['backbone'].startswith(prefix)
    )


def _legend_of(number: int, row: Row) -> Line2D:
    label, shade, marker = _look(number, row)
    return Line2D([], [], color=shade, marker=marker, ls='none', label=label)


def _add_legend(fig: Figure, handles: list) -> None:
    """A legend below, one entry for each label."""
    unique = {handle.get_label(): handle for handle in handles}
    fig.legend(
        handles=list(unique.values()),
        loc='outside lower center',
        ncols=2,
        fontsize=8,
        frameon=False,
    )


def draw_classes(section: Section, row: Row) -> bytes | None:
    """By class, what a row has more or less than the first one.

    Args:
        section (Section): the rows of a task.
        row (Row): a measured one, not the first.

    Returns:
        bytes | None: a PNG; None if they have no class in common.
    """
    first = section.measured[0]
    name = next((n for n in ('box_ap', 'iou') if n in first.per_class), None)
    if name is None:
        return None
    mine, theirs = row.per_class.get(name, {}), first.per_class[name]
    gains = sorted((mine[c] - theirs[c], c) for c in mine if c in theirs)
    if not gains:
        return None
    half = MOST_CLASSES // 2
    left_out = max(0, len(gains) - MOST_CLASSES)
    if left_out:
        gains = gains[:half] + gains[-half:]
    fig = Figure(figsize=(7, 1.3 + 0.21 * len(gains)), layout='constrained')
    axis = fig.subplots()
    places = np.arange(len(gains), dtype=float)
    if left_out:
        places[half:] += 1
    values = [gain for gain, _ in gains]
    axis.barh(
        places,
        values,
        color=[COLORS[0] if gain >= 0 else COLORS[1] for gain in values],
    )
    axis.set_yticks(places, [label for _, label in gains], fontsize=8)
    axis.axvline(0, color='#444444', linewidth=0.8)
    quantity = 'box AP' if name == 'box_ap' else 'IoU'
    _style(axis, f'difference of {quantity}, percentage points', '')
    axis.grid(visible=False, axis='y')
    axis.margins(y=0.01)
    left, right = (
        section.rows.index(row) + 1,
        section.rows.index(first) + 1,
    )
    title = f'row {left} minus row {right}'
    if left_out:
        title += f' ({left_out} classes between them left out)'
    axis.set_title(title, fontsize=10)
    return _png(fig)


def draw_curves(
    section: Section, curves: list[tuple[str, int, Curves]]
) -> bytes | None:
    """Training loss and validated score over time.

    Args:
        section (Section): the rows of a task.
        curves (list[tuple[str, int, Curves]]): of each run its name, the
            number of its colour and what it logged.

    Returns:
        bytes | None: a PNG; None without curves.
    """
    if not curves:
        return None
    name = next(
        (
            n
            for n in MAIN[section.task]
            if any(n in c.scores for *_, c in curves)
        ),
        None,
    )
    panels = 1 if name is None else 2
    fig = Figure(figsize=(6 * panels, 4.4), layout='constrained')
    axes = fig.subplots(1, panels, squeeze=False)[0]
    epochs = all(
        run.unit == 'epoch' for *_, run in curves if name in run.scores
    )
    for label, number, run in curves:
        style = dict(color=color(number), linewidth=1.2, label=label)
        axes[0].plot(*_xy(run.loss), **style)
        if name in run.scores:
            points = run.scores[name] if epochs else run.by_iteration(name)
            axes[1].plot(*_xy(points), marker='o', markersize=3.5, **style)
    _style(axes[0], 'iteration', 'training loss')
    if name is not None:
        unit = 'epoch' if epochs else 'iteration'
        _style(axes[1], unit, f'{HEADINGS[name]} in validation, %')
    _add_legend(fig, axes[0].get_lines())
    return _png(fig)


def _xy(points: list[tuple[float, float]]) -> tuple[list, list]:
    return [x for x, _ in points], [y for _, y in points]


def _style(axis: Axes, xlabel: str, ylabel: str) -> None:
    axis.set(xlabel=xlabel, ylabel=ylabel)
    axis.grid(alpha=0.3)
    axis.spines[['top', 'right']].set_visible(False)


def _png(fig: Figure) -> bytes:
    buffer = BytesIO()
    fig.savefig(buffer, format='png', dpi=DPI)
    return buffer.getvalue()


def has_other_costs(section: Section) -> bool:
    """Whether a row's FLOPs or latency are those of another input."""
    first = section.rows[0]
    return any(
        said.startswith(('FLOPs', 'latency'))
        for row in section.rows[1:]
        for said in describe_differences(row, first)
    )

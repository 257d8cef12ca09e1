"""Figures of the numbers, as PNG files in memory."""

from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from .blocks import ATTENTION_BINS, QUERY_BINS, Pairs
from .measures import APART, EQUAL, METHODS, SIDES

DPI = 140
# Wong's palette, which colour-blind readers can tell apart; and markers.
STYLES = {
    'subtract': ('subtraction', '#0072b2', 'o'),
    'with_local': ('with local residual (InLine)', '#cc79a7', 'D'),
    'divide': ('division', '#d55e00', 's'),
    'softmax': ('softmax', '#009e73', '^'),
}
UNIFORM = '#555555'
# Counts of pairs: blue and light, so that the envelope stands out.
COUNTS = 'Blues'


def draw_injectivity(blocks: list[dict], pairs: dict, note: str) -> bytes:
    """Distances of queries against distances of their distributions.

    Args:
        blocks (list[dict]): the blocks to draw, as in the JSON.
        pairs (dict[str, dict[str, Pairs]]): by block's name and method.
        note (str): title of the figure, may be empty.

    Returns:
        bytes: a PNG, blocks below each other, methods side by side.
    """
    fig = Figure(figsize=(10.5, 0.9 + 2.8 * len(blocks)), layout='constrained')
    axes = fig.subplots(
        len(blocks), len(METHODS), squeeze=False, sharex=True, sharey=True
    )
    most = max(
        pairs[block['name']][method].counts.max()
        for block in blocks
        for method in METHODS
    )
    norm = LogNorm(1, max(most, 2))
    for row, block in zip(axes, blocks, strict=True):
        for axis, method in zip(row, METHODS, strict=True):
            mesh = _draw_pairs(axis, pairs[block['name']][method], norm)
            axis.set_title(_describe(block, method), fontsize=9)
    fig.supxlabel('distance of two queries, in medians', fontsize=10)
    fig.supylabel('distance of their attention, in medians', fontsize=10)
    axes[0, 0].legend(fontsize=8, loc='upper left', framealpha=0.9)
    bar = fig.colorbar(mesh, ax=axes, shrink=0.6, aspect=30, pad=0.01)
    bar.set_label('pairs of queries, all heads and images', fontsize=9)
    fig.suptitle(note, fontsize=10)
    return png(fig)


def _describe(block: dict, method: str) -> str:
    """Title of a panel: what it shows, and its two numbers."""
    found = block['injectivity'][method]
    if block['normalization'] == method:
        note = ", the model's own"
    else:
        note = ', after relu' if method == 'divide' else ''
    rate, doubling = _mean(found['collision_rate']), _mean(found['doubling'])
    lines = [f'block {block["label"]}: {STYLES[method][0]}{note}']
    if rate is not None:
        lines.append(f'{100 * rate:.2g} % of distinct pairs collide')
        moved = 0 if doubling < 1e-6 else doubling
        lines.append(f'doubled query: attention moves {moved:.2g} medians')
    return '\n'.join(lines)


def _mean(heads: list) -> float | None:
    known = [value for value in heads if value is not None]
    return float(np.mean(known)) if known else None


def _draw_pairs(axis: Axes, pairs: Pairs, norm: LogNorm):
    counts = np.ma.masked_equal(pairs.counts, 0)
    mesh = axis.pcolormesh(
        QUERY_BINS, ATTENTION_BINS, counts.T, norm=norm, cmap=COUNTS
    )
    axis.fill_between(
        [APART, QUERY_BINS[-1]],
        ATTENTION_BINS[0],
        EQUAL,
        facecolor='#e69f00',
        alpha=0.35,
        linewidth=0,
        label='collision',
    )
    known = np.isfinite(pairs.lowest)
    axis.plot(
        np.sqrt(QUERY_BINS[1:] * QUERY_BINS[:-1])[known],
        pairs.lowest[known].clip(ATTENTION_BINS[0]),
        color='#d55e00',
        linewidth=1.6,
        label='closest pair',
    )
    axis.set(
        xscale='log',
        yscale='log',
        xlim=(QUERY_BINS[0], QUERY_BINS[-1]),
        ylim=(ATTENTION_BINS[0], ATTENTION_BINS[-1]),
    )
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_formatter(lambda value, _: f'{value:g}')
    axis.grid(alpha=0.25)
    axis.spines[['top', 'right']].set_visible(False)
    return mesh


def draw_locality(blocks: list[dict], note: str) -> bytes:
    """Share of the attention near the query, block by block.

    Args:
        blocks (list[dict]): all blocks, as in the JSON.
        note (str): title of the figure, may be empty.

    Returns:
        bytes: a PNG, a panel for each size of neighbourhood; lines are means
        over heads, points are heads.
    """
    fig = Figure(figsize=(13, 4.6), layout='constrained')
    axes = fig.subplots(1, len(SIDES), sharey=True)
    for index, (axis, side) in enumerate(zip(axes, SIDES, strict=True)):
        for key in STYLES:
            values = [
                None
                if key not in block['locality']
                else [head[index] for head in block['locality'][key]]
                for block in blocks
            ]
            _draw_heads(axis, blocks, values, key)
        uniform = [block['locality']['uniform'][index] for block in blocks]
        _draw_limit(axis, blocks, uniform, 'equal weights')
        _style(axis, blocks, f'{side}x{side} tokens around the query')
        _log_scale(axis, 100, ' %')
    axes[0].set_ylabel('share of the absolute weights')
    _legend(fig, axes[0])
    fig.suptitle(note, fontsize=10)
    return png(fig)


def draw_ranks(blocks: list[dict], note: str) -> bytes:
    """Effective ranks, block by block.

    Args:
        blocks (list[dict]): all blocks, as in the JSON.
        note (str): title of the figure, may be empty.

    Returns:
        bytes: a PNG: attention matrix less equal weights (a point for each
        head) and output.
    """
    fig = Figure(figsize=(11, 4.6), layout='constrained')
    left, right = fig.subplots(1, 2)
    for key in STYLES:
        ranks = [block['effective_rank'] for block in blocks]
        heads = [rank['attention_centred'].get(key) for rank in ranks]
        _draw_heads(left, blocks, heads, key)
        outputs = [rank['output'].get(key) for rank in ranks]
        outputs = [None if value is None else [value] for value in outputs]
        _draw_heads(right, blocks, outputs, key)
    for axis, title, limit in (
        (left, 'attention of a head, less equal weights', 'attention_limit'),
        (right, 'output of all heads', 'output_limit'),
    ):
        limits = [block['effective_rank'][limit] for block in blocks]
        _draw_limit(axis, blocks, limits, 'largest possible')
        _style(axis, blocks, title)
        _log_scale(axis, 1, '')
    left.set_ylabel('effective rank')
    _legend(fig, right)
    fig.suptitle(note, fontsize=10)
    return png(fig)


def _draw_heads(axis: Axes, blocks: list[dict], values: list, key: str):
    """Means as a line, heads as points; None or null is left out."""
    label, shade, marker = STYLES[key]
    known = [
        (place, [v for v in heads if v is not None])
        for place, heads in enumerate(values)
        if heads is not None
    ]
    known = [(place, heads) for place, heads in known if heads]
    if not known:
        return
    # Side by side, so that points of one method don't hide another's.
    shift = 0.09 * (list(STYLES).index(key) - 1.5)
    for place, heads in known:
        axis.plot(
            [place + shift] * len(heads),
            heads,
            color=shade,
            marker=marker,
            linestyle='none',
            markersize=2.5,
            alpha=0.4,
        )
    means = {place: np.mean(heads) for place, heads in known}
    for stage in _by_stage(blocks):
        places = [place for place in stage if place in means]
        axis.plot(
            [place + shift for place in places],
            [means[place] for place in places],
            color=shade,
            marker=marker,
            markersize=5,
            linewidth=1.4,
            label=label,
        )


def _draw_limit(axis: Axes, blocks: list[dict], values: list, label: str):
    """A dashed line for each stage, as wide as its blocks."""
    for stage in _by_stage(blocks):
        axis.plot(
            [stage[0] - 0.4, *stage, stage[-1] + 0.4],
            [values[place] for place in (stage[0], *stage, stage[-1])],
            color=UNIFORM,
            linestyle='--',
            linewidth=1.2,
            label=label,
        )


def _by_stage(blocks: list[dict]) -> list[list[int]]:
    """Places of the blocks of each stage: no line joins stages."""
    stages = {}
    for place, block in enumerate(blocks):
        stages.setdefault(block['stage'], []).append(place)
    return list(stages.values())


def _log_scale(axis: Axes, factor: float, unit: str) -> None:
    axis.set_yscale('log')
    low, high = axis.get_ylim()
    # One decade has one label of its own at most.
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_formatter(lambda y, _: f'{factor * y:g}{unit}')


def _style(axis: Axes, blocks: list[dict], title: str) -> None:
    axis.set_title(title, fontsize=10)
    places = range(len(blocks))
    labels = [block['label'] for block in blocks]
    axis.set_xticks(
        places, labels, fontsize=8, rotation=90 if len(labels) > 14 else 0
    )
    staged = blocks[0]['stage'] is not None
    axis.set_xlabel('stage.block' if staged else 'block')
    axis.grid(alpha=0.3)
    axis.spines[['top', 'right']].set_visible(False)
    for stage in _by_stage(blocks)[1:]:
        axis.axvline(stage[0] - 0.5, color='#bbbbbb', linewidth=0.8)


def _legend(fig: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    fig.legend(
        list(unique.values()),
        list(unique),
        loc='outside lower center',
        ncols=5,
        fontsize=9,
        frameon=False,
    )


def png(fig: Figure) -> bytes:
    """A figure as the content of a PNG file."""
    buffer = BytesIO()
    fig.savefig(buffer, format='png', dpi=DPI)
    return buffer.getvalue()

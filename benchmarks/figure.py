"""Latency and memory against resolution, drawn."""

from io import BytesIO
from pathlib import Path

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
from matplotlib.ticker import LogFormatter, NullFormatter

from inline_mm.checkpoint.writing import write_atomically

from .models import short_name
from .tables import extra_memory

COLORS = ('#0072b2', '#d55e00', '#009e73', '#7f7f7f', '#cc79a7', '#e69f00')
STYLES = ('-', '--', ':', '-.')


def draw_scaling(record: dict, path: Path) -> None:
    """Draws a section, both axes logarithmic.

    Args:
        record (dict): a section that was measured, no profile.
        path (Path): the PNG to write.
    """
    panels = [('median ms', lambda row: row['median'] and 1e3 * row['median'])]
    if record['memory']:
        panels.append(('extra peak memory, MB', _megabytes))
    fig, axes = plt.subplots(
        1, len(panels), figsize=(5.5 * len(panels), 4.2), squeeze=False
    )
    layers = record['kind'] == 'layers'
    for axis, (label, value) in zip(axes[0], panels, strict=True):
        for key, rows in _lines(record).items():
            points = [(_size(row), value(row)) for row in rows if value(row)]
            axis.plot(
                [x for x, _ in points],
                [y for _, y in points],
                marker='o',
                # Sizes of layers differ in channels: no line joins them.
                linestyle='none' if layers else _style(record, key),
                markersize=4,
                color=_color(record, key),
                label=_label(record, key),
            )
        axis.set(xscale='log', yscale='log', ylabel=label)
        unit = 'tokens' if layers else 'pixels'
        axis.set_xlabel(f'{unit}, of all images')
        axis.xaxis.set_major_formatter(LogFormatter())
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3, which='both')
    axes[0][0].legend(fontsize=8)
    fig.suptitle(
        f'{record["title"]} ({record["options"]["device"]}, '
        f'{record["options"]["threads"]} CPU thread(s))',
        fontsize=10,
    )
    fig.tight_layout()
    buffer = BytesIO()
    fig.savefig(buffer, format='png', dpi=100)
    plt.close(fig)
    write_atomically(path, buffer.getvalue())


def _size(row: dict) -> int:
    batch, height, width = row['shape'][:3]
    return batch * height * width


def _megabytes(row: dict) -> float | None:
    extra = extra_memory(row)
    return extra and extra / 1e6


def _lines(record: dict) -> dict[tuple, list[dict]]:
    """Rows by candidate, batch, dtype and mode, small inputs first."""
    layers = record['kind'] == 'layers'
    lines = {}
    for row in sorted(record['rows'], key=_size):
        batch = None if layers else row['shape'][0]
        key = (row['candidate'], batch, row['dtype'], row['mode'])
        lines.setdefault(key, []).append(row)
    return lines


def _color(record: dict, key: tuple) -> str:
    names = list(dict.fromkeys(record['candidates']))
    return COLORS[names.index(key[0]) % len(COLORS)]


def _settings(record: dict) -> list[tuple]:
    return list(dict.fromkeys(key[1:] for key in _lines(record)))


def _style(record: dict, key: tuple) -> str:
    return STYLES[_settings(record).index(key[1:]) % len(STYLES)]


def _label(record: dict, key: tuple) -> str:
    name, batch, dtype, mode = key
    if len(_settings(record)) == 1:
        return short_name(name)
    batch = '' if batch is None else f', batch {batch}'
    return f'{short_name(name)}{batch}, {dtype}, {mode}'

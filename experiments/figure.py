"""The figure of an experiment's report."""

from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

COLORS = ('#0072b2', '#7a7a7a')


class Panel(NamedTuple):
    """One plot of scores.

    Args:
        title (str): above it.
        labels (Sequence[str]): of the places along its axis.
        series (dict[str, list[tuple[int, float]]]): by what the legend says,
            place and score of each run; at most two series. The axis of
            scores begins at zero where there are two.
    """

    title: str
    labels: Sequence[str]
    series: dict[str, list[tuple[int, float]]]


def draw_scores(panels: Sequence[Panel]) -> bytes:
    """Each run's score as a dot, in plots side by side.

    Args:
        panels (Sequence[Panel]): the plots.

    Returns:
        bytes: a PNG.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout='constrained')
    grid = figure.subplots(1, len(panels), squeeze=False)
    for axes, panel in zip(grid[0], panels, strict=True):
        for (name, points), color in zip(
            panel.series.items(), COLORS[: len(panel.series)], strict=True
        ):
            places, scores = zip(*points, strict=True)
            axes.scatter(places, scores, s=28, alpha=0.7, c=color, label=name)
        axes.set_xticks(
            range(len(panel.labels)), panel.labels, rotation=30, ha='right'
        )
        if len(panel.series) > 1:
            axes.set_ylim(bottom=0)
        axes.set_title(panel.title)
        axes.grid(axis='y', alpha=0.3)
    if len(panels[-1].series) > 1:
        axes.legend()
    buffer = BytesIO()
    figure.savefig(buffer, format='png', dpi=130)
    return buffer.getvalue()

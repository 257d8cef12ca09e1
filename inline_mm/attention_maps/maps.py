"""Maps of where single queries attend, drawn over the image."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .blocks import kernelled
from .features import Features
from .figures import STYLES, png
from .measures import attention_weights

# From blue (below the uniform weight) to red; both ends differ in lightness
# from the middle, and from each other for colour-blind readers.
COLORS = 'RdBu_r'
# Share of the weights that the colours resolve; those beyond are clipped.
RESOLVED = 99.5


class Point(NamedTuple):
    """A place in an image, both coordinates from 0 to 1.

    Args:
        x (float): from the left.
        y (float): from the top.
    """

    x: float
    y: float

    def token(self, hw_shape: tuple[int, int]) -> tuple[int, int]:
        """Row and column of the token that holds it."""
        return tuple(
            min(int(share * side), side - 1)
            for share, side in zip((self.y, self.x), hw_shape, strict=True)
        )


def draw_maps(
    features: Features, points: list[Point], image: np.ndarray, title: str
) -> bytes:
    """The weights of some queries over the image, head by head.

    Shown is N w - 1: how far a weight w is from the uniform one, 1 / N, in
    units of it. Rows are points, for each the block's own attention and
    softmax on the same queries and keys; columns are heads. A row has one
    scale.

    Args:
        features (Features): of the block.
        points (list[Point]): the queries.
        image (np.ndarray): RGB, (H, W, 3), uint8.
        title (str): what the figure is of.

    Returns:
        bytes: a PNG.
    """
    methods = list(dict.fromkeys([features.normalization, 'softmax']))
    lines = [(point, method) for point in points for method in methods]
    fig, axes, bars = _layout(len(lines), len(features.q), image.shape)
    gray = image.mean(-1) / 255
    for (point, method), line, bar in zip(lines, axes, bars, strict=True):
        maps = _maps(features, point, method)
        scale = max(np.percentile(np.abs(maps), RESOLVED), 1e-12)
        for axis, values in zip(line, maps, strict=True):
            shown = _draw_map(axis, gray, values, scale, point)
        line[0].set_ylabel(
            f'({point.x:.2g}, {point.y:.2g})\n{_short(method)}', fontsize=8
        )
        fig.colorbar(shown, cax=bar, extend='both')
        bar.tick_params(labelsize=7)
    for head, axis in enumerate(axes[0]):
        axis.set_title(f'head {head + 1}', fontsize=9)
    fig.suptitle(
        f'{title}\nweights relative to the uniform one: $N w - 1$',
        fontsize=9,
        y=1 - 0.08 / fig.get_figheight(),
    )
    return png(fig)


def _layout(rows: int, heads: int, shape: tuple) -> tuple[Figure, list, list]:
    """Axes of maps and of their colour bars, in sizes given in inches.

    (matplotlib's own layout takes seconds for that many.)
    """
    width = max(1.35, min(2.8, 9 / heads))
    height = width * shape[0] / shape[1]
    left, right, top, bottom, gap = 0.6, 0.65, 0.75, 0.1, 0.08
    full_width = left + heads * (width + gap) + 0.12 + right
    full_height = top + rows * (height + gap) + bottom
    fig = Figure(figsize=(full_width, full_height))
    grid = fig.add_gridspec(
        rows,
        heads + 1,
        left=left / full_width,
        right=1 - right / full_width,
        top=1 - top / full_height,
        bottom=bottom / full_height,
        width_ratios=[width] * heads + [0.12],
        wspace=gap / width,
        hspace=gap / height,
    )
    axes = [
        [fig.add_subplot(grid[row, head]) for head in range(heads)]
        for row in range(rows)
    ]
    bars = [fig.add_subplot(grid[row, heads]) for row in range(rows)]
    return fig, axes, bars


def _short(method: str) -> str:
    return STYLES[method][0].partition(' (')[0]


def _maps(features: Features, point: Point, method: str) -> np.ndarray:
    """N w - 1 of each head on the grid, (heads, H, W)."""
    height, width = features.hw_shape
    row, column = point.token(features.hw_shape)
    place = features.prefix + row * width + column
    q, _, k = kernelled(features, method)
    maps = [
        attention_weights(query[place][None], keys, method)[0]
        for query, keys in zip(q, k, strict=True)
    ]
    return np.stack(
        [
            (len(w) * w - 1)[features.prefix :]
            .view(height, width)
            .cpu()
            .numpy()
            for w in maps
        ]
    )


def _draw_map(axis: Axes, gray, values, scale: float, point: Point):
    extent = (0, 1, 1, 0)
    axis.imshow(gray, cmap='gray', vmin=-0.3, vmax=1.1, extent=extent)
    shown = axis.imshow(
        values,
        cmap=COLORS,
        vmin=-scale,
        vmax=scale,
        alpha=0.65,
        extent=extent,
        interpolation='nearest',
    )
    axis.plot(
        point.x,
        point.y,
        marker='*',
        markersize=9,
        color='#f0e442',
        markeredgecolor='black',
        markeredgewidth=0.7,
    )
    axis.set(xticks=[], yticks=[])
    axis.set_aspect(gray.shape[0] / gray.shape[1])
    return shown

"""From a config, weights and images to a folder of figures and numbers."""

import json
import logging
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.utils import track_iter_progress

from ..checkpoint.writing import write_atomically
from ..errors import LaunchError
from ..version import __version__
from .gather import SEED, Gatherer
from .inputs import RANDOM, build_backbone, find_pictures, read_points
from .measures import APART, EQUAL, SIDES

POINTS = ('0.5,0.5', '0.67,0.67')
# Images that maps are drawn of; the numbers are those of all.
MAPPED = 4
RECORD = 'attention.json'
DEFINITIONS = {
    'methods': (
        "'subtract', 'divide' and 'softmax' are computed from the same "
        "queries, keys and values, after the block's kernel; where the block "
        "does not divide itself, 'divide' takes relu of queries and keys, and "
        'what relu alone makes equal counts against it (doubling does not '
        "depend on that). 'with_local' is the block's own normalisation with "
        'its local residual (and LePE).'
    ),
    'injectivity': (
        'Euclidean distances of pairs of queries, and of their weights, each '
        'divided by its median over the pairs of a head. Queries are distinct '
        f'from {APART} medians on. collision_rate: share of distinct pairs '
        f'whose weights differ by at most {EQUAL} medians. lowest_slope: '
        'smallest ratio of the two distances among distinct pairs. '
        'relative_spread: median distance of weights over their norm. '
        'doubling: median distance of the weights of a query and of its '
        'double, in medians. One number for each head.'
    ),
    'locality': (
        'Share of the absolute weights (those of subtract may be negative) '
        f'inside {", ".join(f"{s}x{s}" for s in SIDES)} tokens around the '
        'query, cut at the border, mean over queries; for each head. Channels '
        'of with_local have weights of their own, the global ones plus their '
        'taps; mean over channels too. uniform: of equal weights.'
    ),
    'effective_rank': (
        'exp of the entropy of the normalised singular values (Roy and '
        'Vetterli 2007). attention: of the queries x tokens matrix, for each '
        'head; attention_centred: of the same less the mean of each row, so '
        'that equal weights do not hide the rest; output, not centred: of the '
        'queries x channels matrix of all heads before the projection. '
        '*_limit: the largest possible.'
    ),
    'mean': 'Every number is a mean over the images; null: not defined.',
}


@dataclass(frozen=True)
class Analysis:
    """What was written.

    Args:
        folder (Path): where.
        files (list[str]): names of the files.
        weights (str): where the weights come from.
        seconds (float): time taken, start of the program left out.
    """

    folder: Path
    files: list[str]
    weights: str
    seconds: float


def analyze(
    cfg: Config,
    checkpoint: str,
    images: list[str],
    out: str,
    points: list[str] = POINTS,
    queries: int = 256,
    image_size: int = 224,
    device: str | None = None,
) -> Analysis:
    """Analyses the InLine blocks of a config's backbone on images.

    Args:
        cfg (Config): config of a detector, a segmentor or a classifier.
        checkpoint (str): see :func:`~.inputs.build_backbone`.
        images (list[str]): images and folders of images.
        out (str): folder for 'attention.json' and the figures, made if need
            be; files of the same names are replaced.
        points (list[str]): queries to map, see :func:`~.inputs.read_points`.
            Defaults to the centre and two thirds.
        queries (int): tokens of a map whose attention is looked at, drawn
            with seed 0; smaller maps are taken whole. Defaults to 256.
        image_size (int): shorter side of the images, in pixels.
            Defaults to 224.
        device (str | None): where to compute. Defaults to None, a GPU if
            there is one.

    Returns:
        Analysis: what was written.

    Raises:
        LaunchError: in one sentence, why nothing was written.
        CheckpointError: likewise, about the weights or the folder.
    """
    start = time.time()
    if queries < 2:
        raise LaunchError(f'--queries is {queries}, expected 2 or more')
    pictures = find_pictures(images, image_size)
    marked = [read_points(points, picture) for picture in pictures[:MAPPED]]
    device = _find_device(device)
    backbone, weights = build_backbone(cfg, checkpoint)
    folder = _make_folder(out)
    note = ''
    if checkpoint == RANDOM:
        weights, note = 'random', 'random weights'
        print_log(
            'RANDOM weights: what follows is how attention starts, not what '
            'it has learnt',
            logger='current',
            level=logging.WARNING,
        )
    gathered = Gatherer(backbone.to(device), cfg, device, queries, note)
    for index, picture in enumerate(track_iter_progress(pictures)):
        gathered.add(picture, marked[index] if index < MAPPED else [])
    files = gathered.draw()
    record = dict(
        inline_mm=__version__,
        config=str(cfg.filename),
        weights=weights,
        images=[
            dict(file=str(p.path), size=list(p.hw), input=list(p.input_hw))
            for p in pictures
        ],
        queries=queries,
        seed=SEED,
        points=list(points),
        definitions=DEFINITIONS,
        blocks=gathered.blocks,
        not_analyzed=gathered.others,
        figures=list(files),
    )
    _write(folder, files, record)
    return Analysis(folder, [*files, RECORD], weights, time.time() - start)


def _write(folder: Path, files: dict[str, bytes], record: dict) -> None:
    """Figures first: numbers of this run mean that its figures are there.

    Figures that a run before left there, and this one doesn't make, go.
    """
    for name in _figures_of(folder / RECORD) - files.keys():
        (folder / name).unlink(missing_ok=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    text = json.dumps(record, indent=1, allow_nan=False) + '\n'
    write_atomically(folder / RECORD, text.encode())


def _figures_of(record: Path) -> set[str]:
    """The maps that a record lists; none without a record of ours."""
    try:
        names = json.loads(record.read_text())['figures']
    except (OSError, ValueError, KeyError):
        return set()
    return {name for name in names if re.fullmatch(r'maps_[^/]*\.png', name)}


def _make_folder(out: str) -> Path:
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(
            f'--out {out}: the folder can not be made: {error.strerror}'
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LaunchError(f'--out {out}: the folder can not be written to')
    return folder


def _find_device(name: str | None) -> torch.device:
    try:
        device = torch.device(name or get_device())
        torch.zeros(1, dtype=torch.float64, device=device)
    except (AssertionError, RuntimeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise LaunchError(
            f'--device {name} can not be used, expected cpu or a GPU of '
            f'this machine such as cuda:0: {reason}'
        ) from None
    return device

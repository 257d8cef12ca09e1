"""The report of the experiment, from the records of its runs."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from ..checkpoint.writing import write_atomically
from .compare_rows import Row, Value, average, make_rows
from .compare_table import HEADINGS, MAIN, TITLES, show

CONTROL = ', frozen'
PAIRS = (('InLine-PVT', 'PVT'), ('InLine-Swin', 'Swin'))
METHODS = dict(detection='Mask R-CNN', segmentation='Semantic FPN')
FIGURE = 'comparison.png'

PROTOCOL = """\
## Protocol

- Data: {train} training and {val} validation images of {size} x {size}
  pixels, drawn with seed {seed} (`inline_mm/analysis/shapes.py`). Four
  classes: a form (disk, bar) with a texture (stripes, checks). Colours and
  sizes are random; triangles with these textures and these forms without
  texture belong to no class; the background is faintly textured; forms hide
  each other.
- Models of a pair are as wide and as deep as each other: the configs in
  `configs/mmdet/shapes` and `configs/mmseg/shapes`, which differ in their
  backbone alone. The baselines are mmdet's. All weights start at random.
- Budget, the same for all: {budgets}.
- Chosen on short probes of InLine-PVT (and, on earlier data, InLine-Swin):
  the difficulty of the data, the learning rate and the lengths. The
  baselines were not probed: what suits InLine-PVT may suit them less.
- Tested once, after the last iteration, on the validation images. Seeds
  change weights and order, not the data.
- Control: "frozen" backbones stay at the random weights they began with,
  while neck and heads train as in the other runs.
- Device: CPU, one thread a run, {versions}. A run trained for {minutes}
  minutes (median).
"""

LIMITS = """\
## What it does not say

Nothing about ImageNet weights, COCO or ADE20K, large images or long
schedules: these models are tiny, began at random and saw few images. Images
of {size} pixels give the first stage {tokens} tokens, where attention of
linear cost has hardly an advantage; latencies belong in a benchmark. Seeds
are few: a difference of the size of its spread is none. The scores compare
backbones under one recipe, not each under its best one.
"""


def write_report(records: Sequence[dict], out: Path) -> None:
    """Writes comparison.md and its figure.

    Args:
        records (Sequence[dict]): of all runs, labelled.
        out (Path): the folder.
    """
    parts = [_introduction(records)]
    for task in METHODS:
        parts.append(_section([r for r in records if r['task'] == task]))
    shapes = records[0]['shapes']
    seconds = sorted(record['seconds'] for record in records)
    versions = records[0]['versions']
    parts.append(
        PROTOCOL.format(
            **shapes,
            budgets='; '.join(_budgets(records)),
            versions=', '.join(
                f'{name} {versions[name]}' for name in ('torch', 'inline_mm')
            ),
            minutes=f'{seconds[len(seconds) // 2] / 60:.1f}',
        )
    )
    tokens = (shapes['size'] // 4) ** 2
    parts.append(LIMITS.format(size=shapes['size'], tokens=tokens))
    write_atomically(out / 'comparison.md', '\n'.join(parts).encode())
    write_atomically(out / FIGURE, draw_scores(records))


def _introduction(records: Sequence[dict]) -> str:
    date = max(record['date'] for record in records)[:10]
    return (
        '# InLine beside PVT and Swin on drawn shapes\n\n'
        'Written by `make experiment` (`tools/experiment.py`) from the '
        f'records of {len(records)} runs, the last\nof {date}. Scores are in '
        'per cent: mean ± standard deviation (n - 1) over the seeds, and '
        'their number.\n\n'
        f'![scores of all runs]({FIGURE})\n'
    )


def _budgets(records: Sequence[dict]) -> list[str]:
    found = {}
    for record in records:
        training = record['training']
        batch = training['batch']
        found[METHODS[record['task']]] = (
            f'{METHODS[record["task"]]} {training["iterations"]} iterations '
            f'of {batch} images'
        )
    return list(found.values())


def _section(records: Sequence[dict]) -> str:
    task = records[0]['task']
    rows = {row.label: row for row in make_rows(records)}
    models = {record['label']: record['model'] for record in records}
    scores = MAIN[task]
    heads = ['backbone']
    heads += [HEADINGS[score] for score in scores]
    heads += [f'{HEADINGS[score]}, frozen' for score in scores]
    heads += ['params, M', 'of the backbone', 'FLOPs, M', 'of the backbone']
    lines = [heads, ['---'] * len(heads)]
    for label in (label for pair in PAIRS for label in pair):
        model = models[label]
        lines.append(
            [
                label,
                *(show(rows[label].scores.get(score)) for score in scores),
                *(
                    show(rows[label + CONTROL].scores.get(score))
                    for score in scores
                ),
                f'{model["params"] / 1e6:.2f}',
                f'{model["backbone_part"]["params"] / 1e6:.2f}',
                f'{model["flops"] / 1e6:.0f}',
                f'{model["backbone_part"]["flops"] / 1e6:.0f}',
            ]
        )
    table = '\n'.join(f'| {" | ".join(line)} |' for line in lines)
    said = [
        *(
            _say_pair(records, *pair, score)
            for score in scores
            for pair in PAIRS
        ),
        *(_say_control(rows, score) for score in scores),
    ]
    remarks = '\n'.join(f'- {sentence}' for sentence in said)
    title = f'## {TITLES[task]}, {METHODS[task]}'
    return f'{title}\n\n{table}\n\n{remarks}\n'


def _say_pair(
    records: Sequence[dict], ours: str, theirs: str, score: str
) -> str:
    """The difference of a pair, seed by seed."""
    values = {
        (record['label'], record['training']['seed']): record['scores'][score]
        for record in records
    }
    gains = [
        value - values[theirs, seed]
        for (label, seed), value in values.items()
        if label == ours
    ]
    mean = average(gains)
    text = f'{HEADINGS[score]}, {ours} less {theirs}: {mean.mean:+.2f}'
    if mean.std is None:
        return f'{text}, one seed.'
    ahead = sum(gain > 0 for gain in gains)
    return (
        f'{text} ± {mean.std:.2f} over {len(gains)} seeds; {ours} is ahead '
        f'with {ahead} of them.'
    )


def _say_control(rows: dict[str, Row], score: str) -> str:
    """What backbones gain by learning, the least of all four."""
    gains = {
        label: _mean(rows[label].scores.get(score))
        - _mean(rows[label + CONTROL].scores.get(score))
        for pair in PAIRS
        for label in pair
    }
    least = min(gains, key=gains.get)
    text = ', '.join(f'{label} {gain:+.1f}' for label, gain in gains.items())
    verdict = (
        'every backbone learns something that counts'
        if gains[least] > 0
        else f'{least} gains nothing by learning, so its scores say nothing '
        'about it'
    )
    return f'{HEADINGS[score]}, trained less frozen: {text}; {verdict}.'


def _mean(value: Value | None) -> float:
    return 0.0 if value is None else value.mean


def draw_scores(records: Sequence[dict]) -> bytes:
    """Each run's score as a dot, by task and backbone.

    Args:
        records (Sequence[dict]): of all runs, labelled.

    Returns:
        bytes: a PNG.
    """
    from matplotlib.figure import Figure

    labels = [label for pair in PAIRS for label in pair]
    panels = [(task, score) for task in METHODS for score in MAIN[task]]
    figure = Figure(figsize=(10, 3.4), layout='constrained')
    for axes, (task, score) in zip(
        figure.subplots(1, len(panels)), panels, strict=True
    ):
        for suffix, color, name in (
            ('', '#0072b2', 'trained'),
            (CONTROL, '#7a7a7a', 'backbone frozen'),
        ):
            points = [
                (place, record['scores'].get(score) or 0.0)
                for place, label in enumerate(labels)
                for record in records
                if record['task'] == task and record['label'] == label + suffix
            ]
            axes.scatter(
                *zip(*points, strict=True),
                s=28,
                alpha=0.7,
                c=color,
                label=name,
            )
        axes.set_xticks(range(len(labels)), labels, rotation=30, ha='right')
        axes.set_ylim(bottom=0)
        axes.set_title(f'{METHODS[task]}: {HEADINGS[score]}')
        axes.grid(axis='y', alpha=0.3)
    axes.legend()
    buffer = BytesIO()
    figure.savefig(buffer, format='png', dpi=130)
    return buffer.getvalue()

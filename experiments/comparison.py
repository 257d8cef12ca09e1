"""InLine beside its baselines: the runs, and the report of their records.

Each backbone trains a detector and a segmentor with several seeds and an
equal budget, and again frozen at random weights. What the frozen ones reach
needs no backbone; only what the others gain over them says anything about
backbones.
"""

from collections.abc import Sequence
from pathlib import Path

from inline_mm.checkpoint.writing import write_atomically
from inline_mm.compare.rows import make_rows
from inline_mm.compare.table import HEADINGS, MAIN, TITLES, show

from . import hook
from .figure import Panel, draw_scores
from .report import (
    DEVICE,
    DRAWN,
    TESTING,
    decide,
    describe_runs,
    gains,
    make_table,
    show_gains,
)
from .runs import Run

MODELS = {
    'InLine-PVT': 'inline-pvt',
    'PVT': 'pvt',
    'InLine-Swin': 'inline-swin',
    'Swin': 'swin',
}
CONFIGS = (
    'mmdet/shapes/mask-rcnn_{}_fpn_shapes-64x64.py',
    'mmseg/shapes/fpn_{}_shapes-64x64.py',
)
CONTROL = ', frozen'
FROZEN = {
    # For the copy of the config that is kept: here it is imported.
    'custom_imports.imports': ['inline_mm', hook.__name__],
    'custom_hooks': [dict(type='FrozenBackboneHook')],
}
PAIRS = (('InLine-PVT', 'PVT'), ('InLine-Swin', 'Swin'))
METHODS = dict(detection='Mask R-CNN', segmentation='Semantic FPN')
FIGURE = 'comparison.png'

INTRODUCTION = """\
# InLine beside PVT and Swin on drawn shapes

Written by `make experiment` (`python -m experiments comparison`) from the
records of {runs} runs, the last of {date}. Scores are in per cent: mean ±
standard deviation (n - 1) over the seeds, and their number.

![scores of all runs]({figure})
"""

PROTOCOL = """\
## Protocol

{data}- Models of a pair are as wide and as deep as each other: the configs in
  `configs/mmdet/shapes` and `configs/mmseg/shapes`, which differ in their
  backbone alone. The baselines are mmdet's. All weights start at random.
- Budget, the same for all: {budgets}.
- Chosen on short probes of InLine-PVT (and, on earlier data, InLine-Swin),
  scored on these validation images: the difficulty of the data, the learning
  rate and the lengths. The baselines were not probed. That favours InLine, by
  an amount nobody has measured.
{testing}\
- Control: "frozen" backbones stay at the random weights they began with,
  while neck and heads train as in the other runs.
{device}"""

LIMITS = """\
## What it does not say

Nothing about ImageNet weights, COCO or ADE20K, large images or long
schedules: these models are tiny, began at random and saw few images. Images
of {size} pixels give the first stage {tokens} tokens, where attention of
linear cost has hardly an advantage; latencies belong in a benchmark. "Better"
means that the 95 % interval of Student's t for the mean difference of the
seeds' pairs leaves out zero; with three seeds much that is true stays
undecided. The scores compare backbones under one recipe, not each under its
best one.
"""


def list_runs(configs: Path, seeds: int, controls: int) -> list[Run]:
    """All runs of the comparison.

    Args:
        configs (Path): the project's folder of configs.
        seeds (int): runs of each model.
        controls (int): runs of each model with its backbone frozen.

    Returns:
        list[Run]: seed by seed, so that a stopped experiment has whole ones.
    """
    kinds = (('', '', {}), (CONTROL, 'frozen', FROZEN))
    return [
        Run(
            f'{label}{suffix}',
            configs / config.format(model),
            seed,
            variant,
            options,
        )
        for seed in range(seeds)
        for suffix, variant, options in kinds
        if not variant or seed < controls
        for config in CONFIGS
        for label, model in MODELS.items()
    ]


def write_report(records: Sequence[dict], out: Path) -> None:
    """Writes comparison.md and its figure.

    Args:
        records (Sequence[dict]): of all runs, labelled.
        out (Path): the folder.
    """
    facts = describe_runs(records)
    parts = [INTRODUCTION.format(runs=len(records), figure=FIGURE, **facts)]
    for task in METHODS:
        parts.append(_section([r for r in records if r['task'] == task]))
    parts.append(
        PROTOCOL.format(
            data=DRAWN.format(**facts),
            testing=TESTING,
            device=DEVICE.format(**facts),
            budgets='; '.join(_budgets(records)),
        )
    )
    size = facts['size']
    parts.append(LIMITS.format(size=size, tokens=(size // 4) ** 2))
    write_atomically(out / 'comparison.md', '\n'.join(parts).encode())
    write_atomically(out / FIGURE, draw_scores(_panels(records)))


def _budgets(records: Sequence[dict]) -> list[str]:
    found = {}
    for record in records:
        training = record['training']
        batch = training['batch']['images']
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
    lines = [heads]
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
    said = [
        *(
            _say_pair(gains(records, ours, theirs, score), score, ours, theirs)
            for score in scores
            for ours, theirs in PAIRS
        ),
        *(_say_control(records, score) for score in scores),
    ]
    remarks = '\n'.join(f'- {sentence}' for sentence in said)
    title = f'## {TITLES[task]}, {METHODS[task]}'
    return f'{title}\n\n{make_table(lines)}\n\n{remarks}\n'


def _say_pair(
    values: Sequence[float], score: str, ours: str, theirs: str
) -> str:
    better = {1: ours, -1: theirs, 0: 'undecided'}[decide(values)]
    return (
        f'{HEADINGS[score]}, {ours} less {theirs}: {show_gains(values)} '
        f'Better: {better}.'
    )


def _say_control(records: Sequence[dict], score: str) -> str:
    """Whether the worst trained run is above the best frozen one."""
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(record['label'], []).append(record['scores'][score])
    labels = [label for pair in PAIRS for label in pair]
    ends = {
        label: (min(values[label]), max(values[label + CONTROL]))
        for label in labels
    }
    text = ', '.join(
        f'{label} {worst:.1f} and {best:.1f}'
        for label, (worst, best) in ends.items()
    )
    lost = [label for label, (worst, best) in ends.items() if worst <= best]
    verdict = 'every backbone learns something that counts'
    if lost:
        verdict = (
            f'not above: {", ".join(lost)}, whose scores say nothing about it'
        )
    return (
        f'{HEADINGS[score]}, worst trained and best frozen run: {text}; '
        f'{verdict}.'
    )


def _panels(records: Sequence[dict]) -> list[Panel]:
    labels = [label for pair in PAIRS for label in pair]
    return [
        Panel(
            f'{METHODS[task]}: {HEADINGS[score]}',
            labels,
            {
                name: [
                    (labels.index(label), record['scores'][score])
                    for record in records
                    for label in labels
                    if record['task'] == task
                    and record['label'] == label + suffix
                ]
                for name, suffix in (
                    ('trained', ''),
                    ('backbone frozen', CONTROL),
                )
            },
        )
        for task in METHODS
        for score in MAIN[task]
    ]

"""The paper's steps to InLine: the runs, and the report of their records.

Division, subtraction, subtraction with the local residual, and softmax, in
segmentors with small models like InLine-Swin-T and InLine-DeiT-T.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from inline_mm.checkpoint.writing import write_atomically
from inline_mm.compare import published
from inline_mm.compare.rows import make_rows
from inline_mm.compare.table import HEADINGS, show

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

SWIN, DEIT = 'Swin-like', 'DeiT-like'
CONFIGS = {
    SWIN: 'mmseg/shapes/fpn_inline-swin_shapes-64x64.py',
    DEIT: 'mmseg/shapes/fcn_inline-deit_shapes-64x64.py',
}
DIVISION = 'division'
SUBTRACTION = 'subtraction'
RESIDUAL = 'subtraction, local residual'
SOFTMAX = 'softmax'
WINDOWS = 'softmax in windows'
RELU = {'model.backbone.kernel': 'relu'}
NO_RESIDUAL = {'model.backbone.local_residual': False}
DIVIDE = {'model.backbone.normalization': 'divide'}
# By what is called so: the models it is tried in, and its options. The kernel
# of the linear ones is ReLU, the only one that the paper has all numbers of.
ATTENTIONS = {
    DIVISION: ((SWIN, DEIT), RELU | DIVIDE | NO_RESIDUAL),
    SUBTRACTION: ((SWIN, DEIT), RELU | NO_RESIDUAL),
    RESIDUAL: ((SWIN, DEIT), RELU),
    SOFTMAX: (
        (SWIN, DEIT),
        {'model.backbone.normalization': 'softmax'} | NO_RESIDUAL,
    ),
    WINDOWS: ((SWIN,), {'model.backbone.arch.inline_depths': [0, 0, 0, 0]}),
}
SWIN_T, DEIT_T = 'inline-swin-tiny_8xb128_in1k', 'deit-tiny_8xb128_in1k'
STEPS = (
    (SUBTRACTION, DIVISION),
    (RESIDUAL, SUBTRACTION),
    (RESIDUAL, SOFTMAX),
    (RESIDUAL, WINDOWS),
)
SCORE = 'miou'
FIGURE = 'ablations.png'

INTRODUCTION = """\
# The paper's ablations on drawn shapes

Written by `make ablations` (`python -m experiments ablations`) from the
records of {runs} runs, the last of {date}. Scores are mIoU in per cent
on drawn shapes: mean ± standard deviation (n - 1) over the seeds, and their
number. The paper's are top-1 accuracies of the full models on ImageNet, as
told by a third party (scime's summary), not checked against the paper; an
empty cell means that no number is known. The two say different things:
compare the steps, not the values.

Of {known} steps that the paper has a number for, {agree} are decided here and
agree with it in direction, {disagree} are decided and disagree, {undecided}
are undecided. The mean alone goes the paper's way in {likewise} of them.

![mIoU of all runs]({figure})
"""

REMARKS = """\
A step counts as decided here if the 95 % interval of Student's t for the mean
difference of the seeds' pairs leaves out zero; what isn't decided neither
supports nor contradicts the paper. 74.5 is the published InLine-DeiT-T, with
the identity kernel and 6 heads where DeiT-T has 3; 82.5 has the ReLU kernel
(82.4 with identity); 81.3 is Swin-T, from FLatten's table.
"""

PROTOCOL = """\
## Protocol

{data}\
- {swin}: the backbone of `configs/mmseg/shapes/{swin_config}` in Semantic
  FPN. As in InLine-Swin-T the last stage stays softmax; "softmax" replaces
  InLine in the three before by softmax over the whole map, "softmax in
  windows" by windows of 7, which is Swin.
- {deit}: that of `configs/mmseg/shapes/{deit_config}`, a head that looks at
  each of 16x16 tokens by itself. Images are enlarged to 256 pixels.
- Linear attentions have the ReLU kernel. Options are those of the ablation
  switches, all else in the configs is equal. Division, subtraction and
  softmax start at the same random weights; the local residual and windows
  have parameters of their own, which draw other numbers from the same seed
  and make the model larger: what they gain can't be told from what the
  parameters gain.
- Budget, the same for all: {iterations} iterations of {batch} images, AdamW.
  {chosen}
{testing}\
{device}"""

CHOSEN = """\
The learning rate and the length are those of the comparison
  (docs/comparison.md), which were chosen with InLine-PVT, identity kernel and
  local residual: that favours the third line of each table. None of the
  models here was tuned."""

LIMITS = """\
## What it does not say

Nothing about ImageNet: these are tiny models from scratch on 64-pixel images
of simple forms, where mixing a neighbourhood may be most of what is needed.
Semantic FPN has 3x3 convolutions of its own, which make up for a backbone
without locality. Three seeds are few.
"""


def list_runs(configs: Path, seeds: int) -> list[Run]:
    """All runs of the ablations.

    Args:
        configs (Path): the project's folder of configs.
        seeds (int): runs of each model.

    Returns:
        list[Run]: seed by seed, so that a stopped experiment has whole ones.
    """
    return [
        Run(
            f'{model}, {attention}',
            configs / CONFIGS[model],
            seed,
            attention.replace(',', '').replace(' ', '-'),
            options,
        )
        for seed in range(seeds)
        for attention, (models, options) in ATTENTIONS.items()
        for model in models
    ]


@cache
def published_top1() -> dict[tuple[str, str], float]:
    """Published top-1 of Swin-T and DeiT-T, by model and attention."""
    relu, plain = dict(kernel='relu'), dict(local_residual=False)
    divide = dict(normalization='divide')
    (swin,) = (row for row in published.rows() if row['name'] == 'Swin-T 224')
    return {
        (SWIN, DIVISION): published.ablation(SWIN_T, relu | divide | plain),
        (SWIN, SUBTRACTION): published.ablation(SWIN_T, relu | plain),
        (SWIN, RESIDUAL): published.ablation(SWIN_T, relu),
        (SWIN, WINDOWS): swin['metrics']['top1'],
        (DEIT, RESIDUAL): published.ablation(f'inline-{DEIT_T}', {}),
        (DEIT, SOFTMAX): published.ablation(DEIT_T, {}),
    }


def write_report(records: Sequence[dict], out: Path) -> None:
    """Writes ablations.md and its figure.

    Args:
        records (Sequence[dict]): of all runs, labelled.
        out (Path): the folder.
    """
    facts = describe_runs(records)
    training = records[0]['training']
    parts = [
        INTRODUCTION.format(
            runs=len(records), figure=FIGURE, **facts, **_count(records)
        ),
        *(_section(records, model) for model in CONFIGS),
        REMARKS,
        PROTOCOL.format(
            data=DRAWN.format(**facts),
            swin=SWIN,
            swin_config=Path(CONFIGS[SWIN]).name,
            deit=DEIT,
            deit_config=Path(CONFIGS[DEIT]).name,
            iterations=training['iterations'],
            batch=training['batch']['images'],
            chosen=CHOSEN,
            testing=TESTING,
            device=DEVICE.format(**facts),
        ),
        LIMITS,
    ]
    write_atomically(out / 'ablations.md', '\n'.join(parts).encode())
    figure = draw_scores([_panel(records, model) for model in CONFIGS])
    write_atomically(out / FIGURE, figure)


def _attentions(model: str) -> list[str]:
    return [
        name for name, (models, _) in ATTENTIONS.items() if model in models
    ]


def _section(records: Sequence[dict], model: str) -> str:
    rows = {row.label: row for row in make_rows(records)}
    found = {record['label']: record['model'] for record in records}
    lines = [
        [
            'attention',
            HEADINGS[SCORE],
            'paper, top-1',
            'backbone, M params',
            'FLOPs, M',
        ]
    ]
    for attention in _attentions(model):
        label = f'{model}, {attention}'
        part = found[label]['backbone_part']
        paper = published_top1().get((model, attention))
        lines.append(
            [
                attention,
                show(rows[label].scores.get(SCORE)),
                '' if paper is None else f'{paper:.1f}',
                f'{part["params"] / 1e6:.3f}',
                f'{part["flops"] / 1e6:.0f}',
            ]
        )
    sizes = {
        name: found[f'{model}, {name}']['backbone_part']['params']
        for name in _attentions(model)
    }
    steps = [
        f'- "{after}" less "{before}" '
        f'({sizes[after] / sizes[before] - 1:+.0%} parameters): '
        + compare_step(values, paper)
        for after, before, values, paper in _steps(records, model)
    ]
    return '\n'.join([f'## {model}\n', make_table(lines), '', *steps, ''])


def _steps(
    records: Sequence[dict], model: str
) -> Iterator[tuple[str, str, list[float], float | None]]:
    """Steps of a model: both attentions, the gains, the paper's gain."""
    known = published_top1()
    for step in STEPS:
        if set(step) <= set(_attentions(model)):
            labels = [f'{model}, {name}' for name in step]
            paper = [known.get((model, name)) for name in step]
            yield (
                *step,
                gains(records, *labels, SCORE),
                None if None in paper else paper[0] - paper[1],
            )


def _count(records: Sequence[dict]) -> dict[str, int]:
    """How many steps the paper has a number for, and how they ended."""
    pairs = [
        (values, paper)
        for model in CONFIGS
        for *_, values, paper in _steps(records, model)
        if paper is not None
    ]
    signs = [decide(values) * paper for values, paper in pairs]
    return dict(
        known=len(pairs),
        agree=sum(sign > 0 for sign in signs),
        disagree=sum(sign < 0 for sign in signs),
        undecided=sum(sign == 0 for sign in signs),
        likewise=sum(sum(values) * paper > 0 for values, paper in pairs),
    )


def compare_step(values: Sequence[float], paper: float | None) -> str:
    """What a step gains here, and whether that is the paper's direction.

    Args:
        values (Sequence[float]): gains, one for each seed.
        paper (float | None): the paper's gain; None if unknown.

    Returns:
        str: a sentence or two.
    """
    sign = decide(values)
    if paper is None:
        verdict = 'no number of the paper to compare with'
    elif not sign:
        verdict = f'undecided here, {paper:+.1f} in the paper'
    elif sign * paper > 0:
        verdict = f'agrees in direction with the paper ({paper:+.1f})'
    else:
        verdict = f'DISAGREES with the paper ({paper:+.1f})'
    text = show_gains(values)
    return f'{text} {verdict[0].upper()}{verdict[1:]}.'


def _panel(records: Sequence[dict], model: str) -> Panel:
    attentions = _attentions(model)
    places = {f'{model}, {name}': i for i, name in enumerate(attentions)}
    points = [
        (places[record['label']], record['scores'][SCORE])
        for record in records
        if record['label'] in places
    ]
    return Panel(f'{model}: {HEADINGS[SCORE]}', attentions, {'runs': points})

"""What is claimed, held against what was measured.

A goal is a ratio of two rows of the preset's sections, or the exponent of a
growth.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import quantiles

from .preset import LARGE_LAYERS, LAYER_SIZES, PVT, SIDES
from .tables import extra_memory

# Tokens of an image from which the layer is held against its products alone.
MANY_TOKENS = 4000


@dataclass(frozen=True)
class Goal:
    """A goal and what was measured.

    Args:
        text (str): what is compared.
        wanted (str): the bound.
        measured (str): the value, with quartiles of the rounds where it is
            of timings; empty where nothing was measured.
        met (bool | None): None where nothing was measured.
    """

    text: str
    wanted: str
    measured: str = ''
    met: bool | None = None


def evaluate_goals(records: dict[str, dict]) -> list[Goal]:
    """Holds the goals against what was measured.

    Args:
        records (dict[str, dict]): sections by name, some may be missing.

    Returns:
        list[Goal]: all goals.
    """
    return [
        *_layer_goals(records),
        *_model_goals(records),
        *_memory_goals(records),
    ]


def _layer_goals(records: dict[str, dict]) -> Iterator[Goal]:
    passes = {'eval': 'forward', 'train': 'forward and backward'}
    for mode, words in passes.items():
        groups = [
            _case_rows(records, f'layers_{mode}', i)
            for i in range(len(LAYER_SIZES))
        ]
        for index in LARGE_LAYERS:
            yield _speed_goal(
                f'layer {LAYER_SIZES[index]}, {words}: straightforward / ours',
                groups[index],
                ('straightforward', 'inline'),
                least=2.5,
            )
        yield _extreme_goal(
            f'layer, {words}, worst of all sizes: straightforward / ours',
            groups,
            ('straightforward', 'inline'),
            least=1.0,
        )
        many = [
            group
            for group, (_, height, width, *_) in zip(
                groups, LAYER_SIZES, strict=True
            )
            if height * width >= MANY_TOKENS
        ]
        yield _extreme_goal(
            f'layer, {words}, worst from {MANY_TOKENS} tokens an image on: '
            'ours / its two GEMMs',
            many,
            ('inline', 'gemm2'),
            most=1.25,
        )


def _model_goals(records: dict[str, dict]) -> Iterator[Goal]:
    inference, training = ('eval', 'inference'), ('train', 'training')
    for name, (mode, words), bounds in (
        ('pvt', inference, {'pvt-tiny': 4.0, PVT[1]: 1.6}),
        ('pvt', training, {'pvt-tiny': 2.0, PVT[1]: 1.25}),
        ('swin', inference, {'swin-tiny': 1.35}),
        ('swin', training, {'swin-tiny': 1.35}),
    ):
        ours = f'inline-{name}-tiny'
        rows = _case_rows(records, f'{name}_{mode}', 0)
        for other, least in bounds.items():
            yield _speed_goal(
                f'800x1280, {words}: {other} / {ours}',
                rows,
                (other, ours),
                least=least,
            )
    for index, (_, words) in enumerate((inference, training)):
        yield _speed_goal(
            f'batch 8 at 224, {words}: swin-tiny / inline-swin-tiny',
            _case_rows(records, 'batch8', index),
            ('swin-tiny', 'inline-swin-tiny'),
            least=1.0,
        )


def _memory_goals(records: dict[str, dict]) -> Iterator[Goal]:
    rows = _case_rows(records, 'memory_eval', 0)
    for ours in ('inline-pvt-tiny', 'inline-swin-tiny'):
        text = f'extra memory, 800x1280, inference: {ours} / swin-tiny'
        pair = [extra_memory(rows[n]) for n in (ours, 'swin-tiny') if rows]
        value = pair[0] / pair[1] if pair and all(pair) else None
        yield _goal(text, value, most=0.5)
    small, large = SIDES.index(1024), SIDES.index(2048)
    groups = [_case_rows(records, 'scaling', i) for i in (small, large)]
    for ours in ('inline-pvt-tiny', 'inline-swin-tiny'):
        ends = [
            (math.prod(rows[ours]['shape']), extra_memory(rows[ours]))
            for rows in groups
            if rows and extra_memory(rows[ours])
        ]
        exponent = None
        if len(ends) == 2:
            (pixels, first), (more_pixels, last) = ends
            exponent = math.log(last / first) / math.log(more_pixels / pixels)
        yield _goal(
            f'extra memory of {ours} grows as pixels to the power of '
            '(1024 to 2048 a side)',
            exponent,
            most=1.05,
        )


def _case_rows(records: dict, name: str, index: int) -> dict[str, dict]:
    """A section's rows of one case by candidate, empty if it is missing."""
    record = records.get(name)
    if record is None:
        return {}
    count = len(record['candidates'])
    rows = record['rows'][index * count : (index + 1) * count]
    return {row['candidate']: row for row in rows}


def _quotient(rows: dict, pair: tuple[str, str]) -> tuple | None:
    """Ratio of two medians, and the quartiles of the rounds' ratios."""
    if not rows or any(rows[name]['median'] is None for name in pair):
        return None
    upper, lower = (rows[name] for name in pair)
    rounds = [
        a / b for a, b in zip(upper['seconds'], lower['seconds'], strict=False)
    ]
    if len(rounds) < 2:
        rounds = rounds * 2
    q1, _, q3 = quantiles(rounds, n=4, method='inclusive')
    return upper['median'] / lower['median'], q1, q3


def _speed_goal(text, rows, pair, least=None, most=None) -> Goal:
    quotient = _quotient(rows, pair)
    if quotient is None:
        return _goal(text, None, least, most)
    value, q1, q3 = quotient
    return _goal(text, value, least, most, f' ({q1:.2f} to {q3:.2f})')


def _extreme_goal(text, groups, pair, least=None, most=None) -> Goal:
    """The goal at its worst size; nothing unless all were measured."""
    quotients = [_quotient(rows, pair) for rows in groups]
    if None in quotients:
        return _goal(text, None, least, most)
    choose = min if most is None else max
    worst = choose(range(len(groups)), key=lambda i: quotients[i][0])
    shape = tuple(groups[worst][pair[0]]['shape'])
    value, q1, q3 = quotients[worst]
    note = f' ({q1:.2f} to {q3:.2f}) at {shape}'
    return _goal(text, value, least, most, note)


def _goal(text, value, least=None, most=None, note='') -> Goal:
    wanted = f'at least {least}' if most is None else f'at most {most}'
    if value is None:
        return Goal(text, wanted)
    met = value >= least if most is None else value <= most
    # A digit more than the bound: 1.345 misses 1.35.
    return Goal(text, wanted, f'{value:.3f}{note}', met)

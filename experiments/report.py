"""What the reports of the experiments share."""

import math
from collections.abc import Sequence
from statistics import median

from scipy.stats import t as student_t

from inline_mm.compare.rows import average

DRAWN = """\
- Data: {train} training and {val} validation images of {size} x {size}
  pixels, drawn with seed {seed} (`experiments/shapes.py`).
  Four classes: a form (disk, bar) with a texture (stripes, checks). Colours
  and sizes are random; triangles with these textures and these forms without
  texture belong to no class; the background is faintly textured; forms hide
  each other.
"""
TESTING = """\
- Tested once, after the last iteration, on the validation images. Seeds
  change weights and order, not the data.
"""
DEVICE = """\
- Device: CPU, one thread a run, {versions}. A run trained for {minutes}
  minutes (median), all of them for {total}.
"""


def describe_runs(records: Sequence[dict]) -> dict:
    """What the texts above are filled with.

    Args:
        records (Sequence[dict]): of all runs.

    Returns:
        dict: the fields of `ShapesConfig`, and 'date', 'versions', and
        'minutes' (of a run) and 'total' ones, as text.
    """
    versions = records[0]['versions']
    minutes = [record['seconds'] / 60 for record in records]
    return dict(
        records[0]['shapes'],
        date=max(record['date'] for record in records)[:10],
        versions=', '.join(
            f'{name} {versions[name]}' for name in ('torch', 'inline_mm')
        ),
        minutes=f'{median(minutes):.1f}',
        total=f'{sum(minutes):.0f}',
    )


def make_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, the first one's the headings, as Markdown."""
    ruled = [lines[0], ['---'] * len(lines[0]), *lines[1:]]
    return '\n'.join(f'| {" | ".join(line)} |' for line in ruled)


def gains(
    records: Sequence[dict], ours: str, theirs: str, score: str
) -> list[float]:
    """What one label's runs have more than the other's of the same seed.

    Args:
        records (Sequence[dict]): labelled records of one task.
        ours (str): label of the first.
        theirs (str): label of the second.
        score (str): a name of `record.SCORES`.

    Returns:
        list[float]: one for each seed.
    """
    values = {
        (record['label'], record['training']['seed']): record['scores'][score]
        for record in records
    }
    return [
        value - values[theirs, seed]
        for (label, seed), value in values.items()
        if label == ours
    ]


def decide(values: Sequence[float]) -> int:
    """Whether a gain is told from none.

    Args:
        values (Sequence[float]): one for each seed.

    Returns:
        int: its sign if the 95 % interval of Student's t for the mean of the
        pairs leaves out zero; 0 else, and for one seed.
    """
    mean = average(values)
    if mean.std is None:
        return 0
    runs = len(values)
    reach = float(student_t.ppf(0.975, runs - 1)) * mean.std / math.sqrt(runs)
    return (mean.mean > reach) - (mean.mean < -reach)


def show_gains(values: Sequence[float]) -> str:
    """Their mean and spread in words, and with how many seeds they agree."""
    mean = average(values)
    if mean.std is None:
        return f'{mean.mean:+.2f}, one seed.'
    ahead = sum(value > 0 for value in values)
    return (
        f'{mean.mean:+.2f} ± {mean.std:.2f} over {len(values)} seeds; more '
        f'with {ahead} of them.'
    )

"""Published numbers beside measured ones."""

from dataclasses import dataclass

from . import published
from .facts import Fact, counted_at, published_schedule
from .rows import Row, Value

# Whose numbers stand beside InLine's.
FAMILIES = ('InLine-', 'Swin-', 'PVT-', 'CSwin-', 'DeiT-')
# Scores of an augmented test have their own name in the published table.
AUGMENTED = {'miou': 'miou_ms'}


@dataclass(frozen=True)
class Difference:
    """A score that was measured here and published.

    Args:
        label (str): name of the measured row.
        score (str): by its name in records.
        measured (Value): what was measured.
        published (float): what was published.
        source (str): by whom.
        circumstances (str): of the measured row, which the published ones
            needn't share.
    """

    label: str
    score: str
    measured: Value
    published: float
    source: str
    circumstances: str


def published_rows(rows: list[Row]) -> list[Row]:
    """The published numbers that belong beside some rows.

    Args:
        rows (list[Row]): measured rows of one task.

    Returns:
        list[Row]: those of the rows' methods; of all methods if none of
        theirs was published.
    """
    task = rows[0].task
    mine = {row.names.get('method') for row in rows}
    entries = [
        entry
        for entry in published.rows()
        if entry['task'] == task and entry['backbone'].startswith(FAMILIES)
    ]
    same = [entry for entry in entries if entry['method'] in mine]
    return [_make_row(entry) for entry in same or entries]


def _make_row(entry: dict) -> Row:
    scores = {
        name: Value(value)
        for name, value in entry['metrics'].items()
        if value is not None
    }
    size = entry['flops_input']
    if size and entry['task'] == 'detection':  # width first, unlike ours
        size = 'x'.join(reversed(size.split('x')))
    notes = [entry['note']] if entry['note'] else []
    if entry['secondary']:
        notes.append('not checked against the paper')
    return Row(
        label=entry['name'],
        task=entry['task'],
        scores=scores,
        facts={
            'method': Fact(entry['method'], entry['method']),
            'schedule': published_schedule(entry['schedule']),
            'FLOPs': counted_at(size) if entry['flops_G'] else None,
        },
        config=entry['config'],
        names=dict(method=entry['method'], backbone=entry['backbone']),
        benchmark=entry['data'],
        params=entry['params_M'],
        flops=entry['flops_G'],
        flops_input=size,
        sources=entry['source'],
        notes=notes,
    )


def compare_with_published(
    rows: list[Row],
) -> tuple[list[Difference], list[str]]:
    """What was measured here against what was published for the same.

    Args:
        rows (list[Row]): measured rows of one task.

    Returns:
        tuple[list[Difference], list[str]]: score by score; and sentences on
        the rows that nothing can be said of.
    """
    theirs = published_rows(rows)
    found, silent, unpublished = [], [], []
    for row in rows:
        match = _find(row, theirs)
        if match is None:
            unpublished.append(row.label)
            continue
        reasons = _why_not(row, match)
        if reasons:
            silent.append(
                f'{row.label}: not comparable with {match.label}, '
                f'{" and ".join(reasons)}.'
            )
            continue
        for score, value in row.scores.items():
            name = AUGMENTED.get(score) if row.tta else score
            if name in match.scores:
                found.append(
                    Difference(
                        row.label,
                        score,
                        value,
                        match.scores[name].mean,
                        match.sources[name]['text'],
                        _circumstances(row),
                    )
                )
    if unpublished:
        silent.append(f'Nothing was published for {", ".join(unpublished)}.')
    return found, silent


def _circumstances(row: Row) -> str:
    said = []
    for about in ('batch', 'initialisation', 'test scale'):
        fact = row.facts.get(about)
        said.append(fact.words if fact else f'{about} unknown')
    return ', '.join(said)


def _find(row: Row, entries: list[Row]) -> Row | None:
    """By the config's name, or by method, backbone and schedule."""
    for entry in entries:
        if row.config is not None and entry.config == row.config:
            return entry
    for entry in entries:
        plan = entry.facts['schedule']
        if entry.names == row.names and plan == row.facts.get('schedule'):
            return entry
    return None


def _why_not(row: Row, entry: Row) -> list[str]:
    reasons = []
    if row.benchmark != entry.benchmark:
        reasons.append(f'which was tested on {entry.benchmark}')
    mine, theirs = row.facts.get('schedule'), entry.facts['schedule']
    if theirs is not None and mine != theirs:
        said = mine.words if mine else 'an unknown schedule'
        reasons.append(f'trained for {theirs.words} instead of {said}')
    return reasons

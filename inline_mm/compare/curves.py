"""Training curves from the logs of work folders."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import LaunchError
from ..results.record import SCORES

SCALARS = 'scalars.json'


@dataclass
class Curves:
    """What one training run logged.

    Args:
        loss (list[tuple[int, float]]): total loss by iteration.
        scores (dict[str, list[tuple[float, float]]]): of validations, in per
            cent, by epoch or iteration, by the names of `record.SCORES`.
        unit (str): of the scores' steps, 'epoch' or 'iteration'.
        epoch_ends (dict[int, int]): last logged iteration of each epoch.
    """

    loss: list[tuple[int, float]]
    scores: dict[str, list[tuple[float, float]]]
    unit: str
    epoch_ends: dict[int, int]

    def by_iteration(self, score: str) -> list[tuple[float, float]]:
        """A score over iterations; epochs end with their last logged one."""
        points = self.scores[score]
        if self.unit == 'iteration':
            return points
        ends = self.epoch_ends
        return [(ends[x], y) for x, y in points if x in ends]


def find_logs(folder: Path) -> list[Path]:
    """The logs of a run, oldest first.

    Args:
        folder (Path): a work folder, with a dated folder for each start of
            the run; or one of those.

    Returns:
        list[Path]: a file for each start: ``vis_data/scalars.json``, or the
        dated copy of it where that is missing.
    """
    folders = [folder / 'vis_data', *sorted(folder.glob('*/vis_data'))]
    if folder.name == 'vis_data':
        folders.append(folder)
    found = []
    for place in folders:
        files = [place / SCALARS, *sorted(place.glob('[0-9]*.json'))]
        found += [file for file in files if file.is_file()][:1]
    return found


def read_curves(folder: Path) -> Curves | None:
    """What a run logged, over all its starts.

    A start that goes on from an earlier one replaces what that one logged
    from there on; a fresh start replaces all of it.

    Args:
        folder (Path): as of :func:`find_logs`.

    Returns:
        Curves | None: None if no training was logged there.

    Raises:
        LaunchError: if a log can't be read.
    """
    train: list[dict] = []
    tests: list[dict] = []
    for path in find_logs(folder):
        entries = _read_log(path)
        new = [e for e in entries if 'loss' in e and 'step' in e]
        if not new:  # a test, or a start that came to nothing
            continue
        begin = min(entry['step'] for entry in new)
        later = [e for e in entries if 'loss' not in e and 'step' in e]
        by_epoch = _is_by_epoch(train + new, tests + later)
        limit = new[0]['epoch'] if by_epoch else begin
        train = [e for e in train if e['step'] < begin]
        tests = [e for e in tests if e['step'] < limit]
        train += _latest(new)
        tests += _latest(later)
    return _make_curves(train, tests) if train else None


def _is_by_epoch(train: list[dict], tests: list[dict]) -> bool:
    """Whether validations count epochs, not iterations.

    They do where training names its epochs, unless the logging hook was told
    otherwise.
    """
    last = max((e['epoch'] for e in train if 'epoch' in e), default=None)
    return last is not None and all(e['step'] <= last for e in tests)


def _read_log(path: Path) -> list[dict]:
    try:
        lines = path.read_text(encoding='utf-8').splitlines()
    except (OSError, ValueError) as error:
        raise LaunchError(f'the log {path} can not be read: {error}') from None
    entries, broken = [], 0
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            broken += 1
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    if broken and not entries:
        raise LaunchError(
            f'the log {path} holds no line of JSON; expected what mmengine '
            'writes there'
        )
    return entries  # a killed run leaves its last line unfinished


def _latest(entries: Iterable[dict]) -> list[dict]:
    """One entry for each step, in order; the last one written counts."""
    by_step = {entry['step']: entry for entry in entries}
    return [by_step[step] for step in sorted(by_step)]


def _make_curves(train: list[dict], tests: list[dict]) -> Curves:
    scores: dict[str, list[tuple[float, float]]] = {}
    for entry in tests:
        for key, value in entry.items():
            name, factor = SCORES.get(key.rpartition('/')[2], (None, 1))
            # -1 is COCO's word for "no value".
            if name and _is_number(value) and value != -1:
                scores.setdefault(name, []).append(
                    (entry['step'], factor * value)
                )
    ends = {e['epoch']: e['step'] for e in train if 'epoch' in e}
    return Curves(
        loss=[(e['step'], e['loss']) for e in train if _is_number(e['loss'])],
        scores=scores,
        unit='epoch' if _is_by_epoch(train, tests) else 'iteration',
        epoch_ends=ends,
    )


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)

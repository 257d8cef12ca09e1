"""Records of tests, read and put into rows: one for each recipe."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from ..errors import LaunchError
from .facts import Fact, benchmark, facts_of


@dataclass(frozen=True)
class Value:
    """A score of one or several runs.

    Args:
        mean (float): mean over the runs that have it.
        std (float | None): their standard deviation (n - 1), None for one.
            Defaults to None.
        runs (int): how many they are. Defaults to 1.
    """

    mean: float
    std: float | None = None
    runs: int = 1


@dataclass
class Row:
    """A line of a table.

    Args:
        label (str): its name.
        task (str): 'detection', 'segmentation' or 'classification'.
        scores (dict[str, Value]): by the names of `record.SCORES`.
        facts (dict[str, Fact | None]): circumstances; None where unknown.
        config (str | None): name of the config. Defaults to None.
        names (dict): 'method' and 'backbone'. Defaults to an empty dict.
        benchmark (str | None): name of the public test set, if it is one.
            Defaults to None.
        tta (bool): tested with augmentation. Defaults to False.
        params (float | None): parameters, in millions. Defaults to None.
        flops (float | None): multiply-adds, in billions. Defaults to None.
        flops_input (str | None): their input. Defaults to None.
        latency (float | None): milliseconds for an image. Defaults to None.
        seeds (list): of its runs. Defaults to an empty list.
        runs (int): how many. Defaults to 1.
        per_class (dict): means by class, by metric. Defaults to an empty
            dict.
        folders (list[Path]): work folders of its runs. Defaults to an empty
            list.
        sources (dict): 'text' and 'url' by cell, for published numbers.
            Defaults to an empty dict: measured ones.
        notes (list[str]): more to say. Defaults to an empty list.
    """

    label: str
    task: str
    scores: dict[str, Value]
    facts: dict[str, Fact | None]
    config: str | None = None
    names: dict[str, str | None] = field(default_factory=dict)
    benchmark: str | None = None
    tta: bool = False
    params: float | None = None
    flops: float | None = None
    flops_input: str | None = None
    latency: float | None = None
    seeds: list = field(default_factory=list)
    runs: int = 1
    per_class: dict[str, dict[str, float]] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def published(self) -> bool:
        """bool: whether others measured it."""
        return bool(self.sources)


def read_record(path: str | Path) -> dict:
    """Reads what ``tools/test.py --result`` wrote.

    Args:
        path (str | Path): the file.

    Returns:
        dict: the record.

    Raises:
        LaunchError: in one sentence, why it is none.
    """
    try:
        content = json.loads(Path(path).read_text(encoding='utf-8'))
    except OSError as error:
        raise LaunchError(f'{path}: {error.strerror}') from None
    except ValueError as error:
        raise LaunchError(f'{path} is not a JSON file: {error}') from None
    wrong = _misfit(content)
    if wrong:
        raise LaunchError(
            f'{path} is not a record of tools/test.py --result: {wrong}; '
            'test again to have one'
        )
    return content


def _misfit(content: Any) -> str | None:
    """What a record lacks, in words."""
    if not isinstance(content, dict):
        return f'it holds a {type(content).__name__}, expected an object'
    for key, kind in (
        ('task', str),
        ('scores', dict),
        ('config', dict),
        ('checkpoint', dict),
    ):
        if not isinstance(content.get(key), kind):
            return f'it has no {key!r}'
    for name, value in content['scores'].items():
        number = isinstance(value, (int, float)) and not isinstance(
            value, bool
        )
        if value is not None and not number:
            return f'its score {name!r} is {value!r}, expected a number'
    return None


def make_rows(records: Iterable[dict]) -> list[Row]:
    """Puts runs of the same recipe and circumstances into one row.

    Args:
        records (Iterable[dict]): records; 'label' names a row, the config's
            name by default.

    Returns:
        list[Row]: in the order of the first run of each.
    """
    groups: dict[Any, list[dict]] = {}
    for record in records:
        groups.setdefault(_recipe(record), []).append(record)
    rows = [_make_row(group) for group in groups.values()]
    for row in rows:
        name = row.task, row.label  # of another task: another table
        same = [other for other in rows if (other.task, other.label) == name]
        if len(same) > 1:  # another setting, said among the differences
            for number, other in enumerate(same, 1):
                other.label = f'{other.label} ({number})'
    return rows


def _label(record: dict) -> str:
    return record.get('label') or record['config'].get('name') or 'unnamed'


def _recipe(record: dict) -> Any:
    """What runs that differ in their seed alone have in common."""
    trained = (record.get('training') or {}).get('config_sha256')
    if trained is None:  # nothing tells that it is the same recipe
        return id(record)
    keys = [
        fact and (fact.key, fact.detail)
        for about, fact in facts_of(record).items()
        if about not in ('FLOPs', 'latency')  # of the machine, not the recipe
    ]
    recipe = [_label(record), record['config'].get('sha256'), trained, keys]
    return json.dumps(recipe, default=str)


def _make_row(group: list[dict]) -> Row:
    runs, notes = _without_repetitions(group)
    first = runs[0]
    model = first.get('model') or {}
    params, flops = model.get('params'), model.get('flops')
    shape = model.get('input_shape')
    times = [run['latency'] for run in runs if run.get('latency')]
    if len({time.get('device') for time in times}) > 1:
        times, notes = (
            [],
            [*notes, 'timed on different devices, so not at all'],
        )
    names = {name: None for run in runs for name in run['scores']}
    folders = [
        Path(run['checkpoint'].get('path') or '').parent for run in runs
    ]
    return Row(
        label=_label(first),
        task=first['task'],
        scores={
            name: value
            for name in names
            if (value := average([r['scores'].get(name) for r in runs]))
        },
        facts=facts_of(first),
        config=first['config'].get('name'),
        names={key: model.get(key) for key in ('method', 'backbone')},
        benchmark=benchmark(first.get('test_data')),
        tta=bool(first.get('tta')),
        params=None if params is None else params / 1e6,
        flops=None if flops is None else flops / 1e9,
        flops_input=None if shape is None else 'x'.join(map(str, shape)),
        latency=median(t['ms'] for t in times) if times else None,
        seeds=[(run.get('training') or {}).get('seed') for run in runs],
        runs=len(runs),
        per_class=_average_classes(runs),
        folders=[folder for folder in folders if folder != Path('.')],
        notes=notes,
    )


def _without_repetitions(group: list[dict]) -> tuple[list[dict], list[str]]:
    """Tests of the same weights are no further runs."""
    runs, seen = [], set()
    for record in group:
        digest = record['checkpoint'].get('sha256')
        if digest is None or digest not in seen:
            runs.append(record)
        seen.add(digest)
    left = len(group) - len(runs)
    note = f'{left} further test(s) of the same weights left out'
    return runs, [note] if left else []


def average(values: Iterable[float | None]) -> Value | None:
    """Mean and spread of the values there are; None without any."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    spread = stdev(found) if len(found) > 1 else None
    return Value(fmean(found), spread, len(found))


def _average_classes(runs: list[dict]) -> dict[str, dict[str, float]]:
    averages: dict[str, dict[str, float]] = {}
    for metric in {m: None for r in runs for m in r.get('per_class') or {}}:
        tables = [(r.get('per_class') or {}).get(metric) or {} for r in runs]
        means = {
            name: average([table.get(name) for table in tables])
            for name in {name: None for table in tables for name in table}
        }
        averages[metric] = {
            name: value.mean for name, value in means.items() if value
        }
    return averages

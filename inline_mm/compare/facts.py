"""The circumstances of a test that a fair comparison keeps equal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What marks a test set as that of the published numbers: type of the data
# set, images, classes.
BENCHMARKS = {
    ('CocoDataset', 5000, 80): 'COCO',
    ('ADE20KDataset', 2000, 150): 'ADE20K',
    ('ImageNet', 50000, 1000): 'ImageNet-1K',
}


@dataclass(frozen=True)
class Fact:
    """A circumstance that rows may differ in.

    Args:
        key (Any): what is compared.
        words (str): what is printed.
        detail (tuple | None): two values; the second one is compared as
            well where the first ones are equal. Defaults to None.
    """

    key: Any
    words: str
    detail: tuple | None = None

    def differs(self, other: 'Fact') -> bool:
        """Whether two rows differ in it."""
        if self.key != other.key:
            return True
        if self.detail is None or other.detail is None:
            return False
        mine, theirs = self.detail, other.detail
        return mine[0] == theirs[0] and mine[1] != theirs[1]


def facts_of(record: dict) -> dict[str, Fact | None]:
    """The circumstances of a test, in the order they are said in.

    Args:
        record (dict): a record.

    Returns:
        dict[str, Fact | None]: by what they are about; None where unknown.
    """
    training = record.get('training') or {}
    model = record.get('model') or {}
    batch = (training.get('batch') or {}).get('images')
    shape = model.get('input_shape')
    device = (record.get('latency') or {}).get('device')
    timed = (record.get('latency') or {}).get('input_shape')
    test_batch, scale = record.get('batch_size'), record.get('test_scale')
    augmented = 'with' if record.get('tta') else 'without'
    return {
        'method': _plain(model.get('method')),
        'schedule': schedule(
            training.get('epochs'),
            training.get('iterations'),
            training.get('done_epochs'),
            training.get('done_iterations'),
        ),
        'batch': batch and Fact(batch, f'{batch} images per step'),
        'initialisation': _initialisation(record),
        'training data': _data(training.get('data')),
        'test data': _data(record.get('test_data')),
        'test scale': None
        if scale is None
        else _plain(', '.join(scale) or 'as the images are'),
        'test batch': test_batch
        and Fact(test_batch, f'{test_batch} image(s)'),
        'augmentation': Fact(
            augmented, f'{augmented} augmentation in the test'
        ),
        'FLOPs': shape and counted_at('x'.join(map(str, shape))),
        'latency': device
        and Fact(
            (device, tuple(timed or ())),
            f'on {device}'
            + (f', {timed[0]}x{timed[1]} pixels' if timed else ''),
        ),
    }


def _plain(words: str | None) -> Fact | None:
    return None if words is None else Fact(words, words)


def schedule(
    epochs: int | None,
    iterations: int | None,
    done_epochs: int | None = None,
    done_iterations: int | None = None,
) -> Fact | None:
    """A schedule in words.

    Args:
        epochs (int | None): planned epochs.
        iterations (int | None): or planned iterations.
        done_epochs (int | None): those behind the tested weights, if known.
            Defaults to None.
        done_iterations (int | None): the same. Defaults to None.

    Returns:
        Fact | None: such as '12 epochs' or '6 of 12 epochs'.
    """
    for planned, done, unit in (
        (epochs, done_epochs, 'epochs'),
        (iterations, done_iterations, 'iterations'),
    ):
        if planned is not None:
            part = f'{done} of ' if done not in (None, planned) else ''
            return _plain(
                f'{part}{planned} {unit[: -1 if planned == 1 else None]}'
            )
    return None


def published_schedule(text: str | None) -> Fact | None:
    """A schedule by its usual name, '1x' or '160k'."""
    if text is None:
        return None
    number = int(text[:-1])
    return (
        schedule(12 * number, None)
        if text.endswith('x')
        else schedule(None, 1000 * number)
    )


def counted_at(size: str) -> Fact:
    """The input of a count of FLOPs; papers write it either way round."""
    return Fact(tuple(sorted(map(int, size.split('x')))), f'at {size}')


def _initialisation(record: dict) -> Fact | None:
    began = record.get('initialisation')
    if not began:
        return None
    text = began.get('text') or 'unknown'
    if not began.get('source'):
        return _plain(text)
    partial = began.get('matched') != began.get('total')
    # Weights of another backbone are other weights; that is no difference.
    return Fact(
        ('weights', partial),
        f'weights of {Path(str(began["source"])).name}'
        + (', in part' if partial else ''),
        ((record.get('model') or {}).get('backbone'), began.get('sha256')),
    )


def _data(entries: list[dict] | None) -> Fact | None:
    if not entries:
        return None
    words = ' and '.join(
        f'{entry["images"]} images of {entry["name"]}'
        + (f' ({entry["sha256"][:8]})' if entry.get('sha256') else '')
        for entry in entries
    )
    key = tuple((entry['images'], entry.get('sha256')) for entry in entries)
    return Fact(key, words)


def benchmark(data: list[dict] | None) -> str | None:
    """Name of the public test set that a record was made on, if on one."""
    if not data or len(data) != 1:
        return None
    entry = data[0]
    kind = (entry.get('name'), entry.get('images'), entry.get('classes'))
    return BENCHMARKS.get(kind)


def describe_differences(row, first) -> list[str]:
    """How a row's circumstances differ from those of the first one.

    Args:
        row (Row): the row.
        first (Row): the row it is compared with.

    Returns:
        list[str]: such as 'schedule (36 epochs, not 12 epochs)'. What one of
        them alone says is a difference; of what others published, only what
        it says counts.
    """
    found = []
    for about, fact in row.facts.items():
        other = first.facts.get(about)
        if fact is not None and other is not None:
            if fact.differs(other):
                found.append(f'{about} ({fact.words}, not {other.words})')
        elif fact is not other and not row.published:
            mine, theirs = (f.words if f else 'unknown' for f in (fact, other))
            found.append(f'{about} ({mine}; of row 1 {theirs})')
    if row.published and row.benchmark != first.benchmark:
        found.append(f'test data ({row.benchmark}, not those of row 1)')
    return found


def list_unknown(row, first) -> list[str]:
    """What isn't known of a measured row, nor of the first one."""
    if row.published:
        return []
    return [
        about
        for about, fact in row.facts.items()
        if fact is None and first.facts.get(about) is None
    ]

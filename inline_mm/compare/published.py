"""Numbers that others published, each with its source (published.yml)."""

from functools import cache
from pathlib import Path

from mmengine.fileio import load

METRICS = (
    'box_ap',
    'box_ap50',
    'box_ap75',
    'mask_ap',
    'mask_ap50',
    'mask_ap75',
    'miou',
    'macc',
    'miou_ms',
    'top1',
)
_KEYS = (
    'name',
    'method',
    'backbone',
    'host',
    'task',
    'data',
    'schedule',
    'config',
    'params_M',
    'flops_G',
    'flops_input',
    'metrics',
    'source',
    'secondary',
    'note',
)


def rows() -> list[dict]:
    """Every published row.

    Returns:
        list[dict]: of each row 'name' (unique), 'method' ('Mask R-CNN',
        'Cascade Mask R-CNN', 'RetinaNet', 'Semantic FPN', 'UPerNet' or
        'classifier'), 'backbone', 'host' ('mmdet', 'mmseg' or 'mmpretrain'),
        'task', 'data', 'schedule', 'config' (our config with that recipe),
        'params_M' (millions), 'flops_G' (billions of multiply-adds) at
        'flops_input' as the source writes it, 'metrics' (percent, by the
        names of `METRICS`; 'miou_ms' is tested at several scales with
        flips), 'secondary' (bool: the source quotes the paper and wasn't
        checked against it) and 'note'. 'source' holds 'text' and 'url' for
        each filled cell, by the key of the cell or metric. What isn't known
        is None.
    """
    return [_complete(row, *_read()) for row in _read()[1]]


def for_config(name: str) -> dict | None:
    """The published row of a shipped config.

    Args:
        name (str): name of the config, without '.py'.

    Returns:
        dict | None: one of :func:`rows`; None if nothing was published.
    """
    return next((row for row in rows() if row['config'] == name), None)


def ablations() -> list[dict]:
    """The rows of the paper's ablations that aren't a config by themselves.

    Returns:
        list[dict]: of each 'config' (ours, that it changes), 'options'
        (arguments of its backbone), 'metrics' (percent, 'top1' on
        ImageNet-1K), 'source' ('text' and 'url') and 'note'; of the last two
        None is what isn't known.
    """
    content = _content()
    return [
        dict(note=None)
        | row
        | dict(source=dict(url=None) | content['sources'][row['source']])
        for row in content['ablations']
    ]


def ablation(config: str, options: dict) -> float | None:
    """Published top-1 of a config with arguments of its backbone changed.

    Args:
        config (str): name of a classifier's config, without '.py'.
        options (dict): the changes; none for the config itself.

    Returns:
        float | None: per cent; None if nothing was published.
    """
    if not options:
        row = for_config(config)
    else:
        row = next(
            (
                row
                for row in ablations()
                if (row['config'], row['options']) == (config, options)
            ),
            None,
        )
    return row and row['metrics']['top1']


@cache
def _content() -> dict:
    return load(Path(__file__).with_name('published.yml'))


def _read() -> tuple[dict, list[dict]]:
    return _content()['sources'], _content()['rows']


def _complete(row: dict, sources: dict, _: list) -> dict:
    """A row with all keys, and the sources themselves in place of names."""
    metrics = {name: row['metrics'].get(name) for name in METRICS}
    cells = {key: row.get(key) for key in ('params_M', 'flops_G')} | metrics
    named = row['source']
    source = {
        key: dict(url=None) | sources[named.get(key, named['metrics'])]
        for key, value in cells.items()
        if value is not None
    }
    return (
        dict.fromkeys(_KEYS)
        | row
        | dict(
            metrics=metrics,
            source=source,
            secondary=row.get('secondary', False),
        )
    )

"""What a config says about its data: data sets, classes, heads, transforms."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import DATASETS

from .report import Findings, quote

SPLITS = {
    'train': ('train', 'val'),
    'val': ('val',),
    'test': ('test',),
    'all': ('train', 'val', 'test'),
}
# These have a class count that isn't the data set's: objects or not, stuff.
_OTHER_HEADS = ('rpn_head', 'semantic_head', 'fused_semantic_head')


def name_of(node) -> str:
    """The bare name of what a config dict builds.

    Args:
        node (dict): with a ``type``, a name with or without scope, or a class.

    Returns:
        str: such as 'CocoDataset'.
    """
    kind = node.get('type', '')
    kind = kind if isinstance(kind, str) else kind.__name__
    return kind.rsplit('.', 1)[-1]


def data_loaders(cfg: Config, mode: str) -> Iterator[tuple[str, dict, list]]:
    """The data sets that a run reads, without their wrappers.

    Args:
        cfg (Config): the whole config.
        mode (str): 'train' (with validation), 'val', 'test' or 'all'.

    Yields:
        tuple[str, dict, list]: the split's name, the config of one data set,
        and the configs of the split's metrics.
    """
    seen: list[tuple] = []
    for split in SPLITS[mode]:
        loader = cfg.get(f'{split}_dataloader')
        evaluator = cfg.get(f'{split}_evaluator') or []
        metrics = (
            list(evaluator)
            if isinstance(evaluator, (list, tuple))
            else [evaluator]
        )
        metrics = [metric for metric in metrics if isinstance(metric, dict)]
        if not isinstance(loader, dict) or 'dataset' not in loader:
            continue
        for dataset in _unwrap(loader['dataset']):
            # Validation and test are often the same.
            if (dataset, metrics) not in seen:
                seen.append((dataset, metrics))
                yield split, dataset, metrics


def _unwrap(dataset) -> Iterator[dict]:
    if not isinstance(dataset, dict):
        return
    inner = dataset.get('dataset'), *(dataset.get('datasets') or ())
    inner = [child for child in inner if isinstance(child, dict)]
    for child in inner:
        yield from _unwrap(child)
    if not inner:
        yield dataset


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps mmengine's remarks back; the checks say the same in a sentence."""
    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def build_dataset(cfg: dict, scope: str, found: Findings):
    """Builds a data set without reading its files.

    Args:
        cfg (dict): the data set's config.
        scope (str): the host that defines it.
        found (Findings): takes what stops it.

    Returns:
        BaseDataset | None: the data set; None if it can't be built.
    """
    if 'classes' in cfg:
        found.fault(
            f"{name_of(cfg)} has the argument 'classes', which is of older "
            'versions; write metainfo=dict(classes=(...)) instead'
        )
        return None
    try:
        with _quiet(), DATASETS.switch_scope_and_registry(scope) as registry:
            return registry.build({**cfg, 'lazy_init': True, 'pipeline': []})
    except (
        AssertionError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        text = str(error.args[0] if error.args else error)
        # A registry wraps the message in the name of what it built.
        found.fault(
            f'{name_of(cfg)} can not be built from its config: '
            f'{" ".join(text.split())[:300]}'
        )
        return None


def check_classes(dataset, cfg: dict, found: Findings) -> tuple | None:
    """Checks that the class names are a sequence of names.

    Args:
        dataset (BaseDataset): built without reading its files.
        cfg (dict): its config.
        found (Findings): takes the faults.

    Returns:
        tuple[str] | None: the names; None if they can't be used.
    """
    metainfo = cfg.get('metainfo') or {}
    for key in metainfo:
        if key != 'classes' and key.lower() in ('classes', 'class', 'names'):
            found.fault(
                f'metainfo has {key!r}, which nothing reads; the key is '
                "'classes'"
            )
            return None
    given = metainfo.get('classes')
    if isinstance(given, str) and not os.path.isfile(given):
        found.fault(
            f'metainfo has classes={given!r}, a string that would be read as '
            f'{len(given)} classes of a letter each; with the comma that '
            f'makes it a tuple: classes=({given!r},)'
        )
        return None
    classes = dataset.metainfo.get('classes')
    if not classes:
        found.fault(
            f'{name_of(cfg)} knows no class names; write '
            "metainfo=dict(classes=('first', 'second')) with yours"
        )
        return None
    classes = tuple(classes)
    doubled = sorted({c for c in classes if classes.count(c) > 1})
    if doubled or not all(isinstance(c, str) for c in classes):
        found.fault(
            f'metainfo has the classes {quote(classes)}; each must be a name, '
            'and no name may come twice'
        )
        return None
    palette = dataset.metainfo.get('palette')
    if isinstance(palette, (list, tuple)) and len(palette) < len(classes):
        found.odd(
            f'the palette has {len(palette)} colours for {len(classes)} '
            'classes, so that drawing would fail; metainfo=dict(palette=None) '
            'has colours made up'
        )
    return classes


def heads(model, path: str = 'model') -> Iterator[tuple[str, int]]:
    """Finds the heads that predict the data set's classes.

    Args:
        model (dict | list): the model's config or a part of it.
        path (str): where that part is. Defaults to 'model'.

    Yields:
        tuple[str, int]: path of the setting and number of classes.
    """
    if isinstance(model, dict):
        number = model.get('num_classes')
        if isinstance(number, int) and 'head' in path:
            yield f'{path}.num_classes', number
        for key, child in model.items():
            if key not in _OTHER_HEADS:
                yield from heads(child, f'{path}.{key}')
    elif isinstance(model, (list, tuple)):
        for index, child in enumerate(model):
            yield from heads(child, f'{path}[{index}]')


def smallest_side(model: dict, split: str) -> int:
    """How small the images of a split may become by resizing.

    Args:
        model (dict): the model's config.
        split (str): 'train', 'val' or 'test'.

    Returns:
        int: pixels; 0 where batches are padded, or for others' backbones.
    """
    preprocessor = model.get('data_preprocessor') or {}
    if split != 'train':
        preprocessor = {**preprocessor, 'size': None}
        preprocessor |= preprocessor.get('test_cfg') or {}
    padded = preprocessor.get('size') or any(
        (preprocessor.get(key) or 0) >= 32
        for key in ('pad_size_divisor', 'size_divisor')
    )
    ours = name_of(model.get('backbone') or {}).startswith('InLine')
    return 32 if ours and not padded else 0


def check_heads(model: dict, classes: tuple, found: Findings) -> None:
    """Compares the class counts of all heads with the data set's.

    Args:
        model (dict): the model's config.
        classes (tuple[str]): the data set's classes.
        found (Findings): takes the fault.
    """
    wrong = [
        f'{path}={number}'
        for path, number in heads(model)
        if number != len(classes)
    ]
    if wrong:
        found.fault(
            f'{", ".join(wrong)} but the data set has {len(classes)} '
            f'class{"es" if len(classes) > 1 else ""} ({quote(classes, 4)}); '
            f'set num_classes={len(classes)} in every head'
        )


def transforms(pipeline) -> Iterator[dict]:
    """Walks through a pipeline, into the alternatives of RandomChoice etc.

    Args:
        pipeline (list | dict): the pipeline or a part of it.

    Yields:
        dict: the config of each transform.
    """
    if isinstance(pipeline, (list, tuple)):
        for child in pipeline:
            yield from transforms(child)
    elif isinstance(pipeline, dict):
        yield pipeline
        yield from transforms(pipeline.get('transforms'))


def find_transform(pipeline, name: str) -> dict:
    """The first transform of a kind.

    Args:
        pipeline (list): the pipeline.
        name (str): bare name of the transform.

    Returns:
        dict: its config; empty if there is none.
    """
    for transform in transforms(pipeline):
        if name_of(transform) == name:
            return transform
    return {}

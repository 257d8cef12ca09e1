"""The record of a test, one JSON file for each."""

import json
import math
import platform
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import mmcv
import mmengine
import torch
from mmengine.config import Config
from mmengine.dist import master_only
from mmengine.logging import print_log
from mmengine.runner import Runner

from ..checkpoint import CheckpointError
from ..checkpoint.reading import hash_file
from ..checkpoint.writing import write_atomically
from ..complexity.count import count
from ..engine import facts
from ..engine.hooks import RunRecordHook
from ..errors import LaunchError
from ..version import __version__
from .observing import ResultHook

TASKS = dict(
    mmdet='detection', mmseg='segmentation', mmpretrain='classification'
)
# Names of the scores by the hosts', and what makes per cent of these.
SCORES = dict(
    bbox_mAP=('box_ap', 100),
    bbox_mAP_50=('box_ap50', 100),
    bbox_mAP_75=('box_ap75', 100),
    bbox_mAP_s=('box_ap_s', 100),
    bbox_mAP_m=('box_ap_m', 100),
    bbox_mAP_l=('box_ap_l', 100),
    segm_mAP=('mask_ap', 100),
    segm_mAP_50=('mask_ap50', 100),
    segm_mAP_75=('mask_ap75', 100),
    segm_mAP_s=('mask_ap_s', 100),
    segm_mAP_m=('mask_ap_m', 100),
    segm_mAP_l=('mask_ap_l', 100),
    mIoU=('miou', 1),
    mAcc=('macc', 1),
    aAcc=('aacc', 1),
    top1=('top1', 1),
    top5=('top5', 1),
)


def check_path(path: str) -> None:
    """Makes sure, before the test, that its record can be written.

    Args:
        path (str): the file; its folder is created when missing.

    Raises:
        LaunchError: if it can't be a file, or doesn't end with '.json'.
    """
    if Path(path).suffix != '.json':
        raise LaunchError(f'--result must end with .json, got {path!r}')
    if Path(path).is_dir():
        raise LaunchError(f'--result {path} is a folder, expected a file')
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(
            f'--result {path}: its folder can not be made: {error.strerror}'
        ) from None


@master_only
def save(
    path: str,
    runner: Runner,
    metrics: dict,
    cfg: Config,
    checkpoint: str,
    tta: bool,
) -> None:
    """Writes the record of a test that has ended, in the first process.

    What can't be found out is null in it, and the log says why.

    Args:
        path (str): the file, replaced if there is one.
        runner (Runner): the runner of the test, with a `ResultHook`.
        metrics (dict): what it returned.
        cfg (Config): the config, before options of the test changed it.
        checkpoint (str): path or URL of the tested weights.
        tta (bool): whether the test augmented the images.

    Raises:
        LaunchError: if it can't be written.
    """
    try:
        write(path, describe_test(runner, metrics, cfg, checkpoint, tta))
    except CheckpointError as error:
        raise LaunchError(f'{error}; the metrics are in the log') from None


def describe_test(
    runner: Runner, metrics: dict, cfg: Config, checkpoint: str, tta: bool
) -> dict:
    """What is known of a test that has ended.

    Args:
        runner (Runner): the runner of the test, with a `ResultHook`.
        metrics (dict): what it returned.
        cfg (Config): the config, before options of the test changed it.
        checkpoint (str): path or URL of the tested weights.
        tta (bool): whether the test augmented the images.

    Returns:
        dict: the record, for :func:`write`. 'metrics' are the host's own,
        'scores' and 'per_class' theirs in per cent under one name in all
        hosts. 'initialisation' is how the training run of the weights began,
        None if the file doesn't say.
    """
    began = next(h for h in runner.hooks if isinstance(h, RunRecordHook))
    seen = next(h for h in runner.hooks if isinstance(h, ResultHook))
    loader = runner.test_loop.dataloader
    file = Path(checkpoint)
    return dict(
        task=TASKS[cfg.default_scope],
        scores=_scores(clean(metrics)),
        per_class=_round(clean(seen.per_class)),
        metrics=clean(metrics),
        config=dict(
            name=Path(cfg.filename).stem, sha256=facts.hash_config(cfg)
        ),
        checkpoint=dict(
            path=str(file.absolute()) if file.is_file() else checkpoint,
            sha256=_try('hash', hash_file, file) if file.is_file() else None,
        ),
        initialisation=began.backbone_init,
        initialisation_text=began.init_text,
        training=clean(
            _try('training', facts.describe_training, seen.meta, cfg)
        ),
        batch_size=cfg.test_dataloader.get('batch_size'),
        test_scale=_try('test scale', _test_scale, runner.cfg),
        tta=tta,
        test_data=_try('test data', facts.describe_data, loader.dataset),
        model=_describe_model(cfg),
        latency=clean(_try('latency', seen.latency)),
        date=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        versions={
            'python': platform.python_version(),
            'torch': torch.__version__,
            'mmengine': mmengine.__version__,
            'mmcv': mmcv.__version__,
            'inline_mm': __version__,
            cfg.default_scope: import_module(cfg.default_scope).__version__,
        },
    )


def _try(what: str, function: Callable, *args) -> Any:
    """A fact, or None if it can't be found: the metrics were expensive."""
    try:
        return function(*args)
    except Exception as error:
        print_log(
            f'the record is without its {what}: {error!r}', logger='current'
        )
        return None


def _scores(metrics: dict) -> dict[str, float | None]:
    found = {}
    for key, value in metrics.items():
        name, factor = SCORES.get(key.rpartition('/')[2], (None, 1))
        if name is not None:
            found[name] = None if value is None else value * factor
    return _round(found)


def _round(values: dict) -> dict:
    """Without what multiplication adds to the printed digits."""
    return {
        key: _round(value)
        if isinstance(value, dict)
        else (None if value is None else round(value, 6))
        for key, value in values.items()
    }


def _test_scale(cfg: Config) -> list[str]:
    dataset = cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    return facts.describe_scale(dataset.pipeline)


def _describe_model(cfg: Config) -> dict:
    names = _try('model', facts.describe_model, cfg.model) or {}
    counted = _try('FLOPs', count, cfg) or {}
    keys = ('params', 'flops', 'input_shape', 'uncounted', 'assumptions')
    return dict.fromkeys(('method', 'backbone', *keys)) | {
        **names,
        **{key: counted[key] for key in keys if key in counted},
    }


def clean(value):
    """Values of metrics as JSON has them.

    Args:
        value: a number, text, tensor or array, or dicts and lists of them.

    Returns:
        the same in Python's types. What stands for "no value" in COCO's and
        mmseg's metrics, -1 and NaN, becomes None.
    """
    if hasattr(value, 'tolist'):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [clean(item) for item in value]
    if isinstance(value, float | int) and (
        value == -1 or not math.isfinite(value)
    ):
        return None
    return value


def write(path: str | Path, record: dict) -> None:
    """Writes a record, all or nothing.

    Args:
        path (str | Path): the file, replaced if there is one.
        record (dict): what to write.

    Raises:
        CheckpointError: if it can't be written.
    """
    text = json.dumps(record, indent=2, allow_nan=False) + '\n'
    write_atomically(Path(path), text.encode())

"""The record of a test, one JSON file for each."""

import json
import math
import platform
from collections.abc import Iterable
from datetime import datetime, timezone
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dist import master_only
from mmengine.runner import Runner

from ..checkpoint.reading import hash_file
from ..checkpoint.writing import write_atomically
from ..version import __version__
from .hooks import RunRecordHook
from .launch import LaunchError


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


def describe_config(cfg: Config) -> dict:
    """Name and hash of a config.

    Args:
        cfg (Config): the config, before a launcher's options changed it.

    Returns:
        dict: 'name' and 'sha256' of the dumped text. Where a run writes and
        how it was started don't count.
    """
    recipe = cfg.copy()
    for key in ('work_dir', 'launcher'):
        recipe.pop(key, None)
    return dict(
        name=Path(cfg.filename).stem,
        sha256=sha256(recipe.pretty_text.encode()).hexdigest(),
    )


def describe_test(
    runner: Runner, metrics: dict, config: dict, checkpoint: str, tta: bool
) -> dict:
    """What is known of a test that has ended.

    Args:
        runner (Runner): the runner of the test.
        metrics (dict): what it returned.
        config (dict): result of :func:`describe_config`.
        checkpoint (str): path or URL of the tested weights.
        tta (bool): whether the test augmented the images.

    Returns:
        dict: the record, for :func:`write`. 'initialisation' is how the
        training run of the weights began, None if the file doesn't say.
    """
    hook = next(h for h in runner.hooks if isinstance(h, RunRecordHook))
    host = runner.cfg.default_scope
    local = Path(checkpoint).is_file()
    return dict(
        metrics=clean(metrics),
        config=config,
        checkpoint=dict(
            path=checkpoint,
            sha256=hash_file(Path(checkpoint)) if local else None,
        ),
        initialisation=hook.backbone_init,
        initialisation_text=hook.init_text,
        batch_size=runner.cfg.test_dataloader.get('batch_size'),
        tta=tta,
        date=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        versions={
            'python': platform.python_version(),
            'torch': torch.__version__,
            'inline_mm': __version__,
            host: import_module(host).__version__,
        },
    )


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


@master_only
def write(path: str, record: dict) -> None:
    """Writes a record, all or nothing, in the first process.

    Args:
        path (str): the file, replaced if there is one.
        record (dict): what to write.

    Raises:
        CheckpointError: if it can't be written.
    """
    text = json.dumps(record, indent=2, allow_nan=False) + '\n'
    write_atomically(Path(path), text.encode())

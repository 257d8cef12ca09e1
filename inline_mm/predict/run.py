"""Predictions on images, folders and videos: drawn, and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.registry import init_default_scope
from mmengine.runner.checkpoint import _load_checkpoint
from mmengine.utils import track_iter_progress

from ..checkpoint.writing import write_atomically
from ..data_check.images import read_image
from ..engine.testing import check_complete
from ..errors import LaunchError
from .results import RESULTS

IMAGES = {'.bmp', '.gif', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp'}
VIDEOS = {'.avi', '.mkv', '.mov', '.mp4', '.webm'}


class Frame(NamedTuple):
    """One picture to look at.

    Args:
        name (str): its name in the output, below the folder.
        path (Path): the file it comes from.
        pixels (np.ndarray | None): BGR, (H, W, 3); None: read the file.
    """

    name: str
    path: Path
    pixels: np.ndarray | None = None


def run(
    source: str,
    cfg: Config,
    checkpoint: str,
    out: str,
    score: float = 0.3,
) -> list[str]:
    """Predicts, draws and writes, one picture after the other.

    Args:
        source (str): an image, a folder of images or a video.
        cfg (Config): the config of a detector, segmentor or classifier.
        checkpoint (str): path or URL of its weights.
        out (str): folder for the results; those of ``a.jpg`` are
            ``a.jpg.png`` (drawn) and ``a.jpg.json``, for a segmentor also
            ``a.jpg.mask.png``, whose values are the classes.
        score (float): detections below are neither drawn nor written.
            Defaults to 0.3.

    Returns:
        list[str]: a sentence for each picture that failed; the others are
        done.

    Raises:
        LaunchError: if there is nothing to read, or the weights don't fill
            the model.
    """
    frames, number = find_frames(Path(source))
    model, classes = load_model(cfg, checkpoint)
    result = RESULTS[cfg.default_scope](classes, score)
    load, *transforms = cfg.test_dataloader.dataset.pipeline
    pipeline = Compose(
        [t for t in transforms if not t['type'].startswith('Load')]
    )
    failures, seen = [], 0
    for frame in track_iter_progress((frames, number)):
        seen += 1
        try:
            pixels = frame.pixels
            if pixels is None:
                pixels = _read(frame.path, load)
            sample = _predict(model, pipeline, pixels)
            target = Path(out) / frame.name
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(target, frame, pixels, sample, result)
        except (ValueError, RuntimeError, cv2.error) as error:
            failures.append(f'{frame.name}: {error}')
    if seen < number:
        failures.append(f'{source}: {seen} of {number} frames can be decoded')
    return failures


def find_frames(source: Path) -> tuple[Iterator[Frame], int]:
    """The pictures behind a path, read one at a time.

    Args:
        source (Path): an image, a folder (its images, not those of folders
            inside) or a video.

    Returns:
        tuple[Iterator[Frame], int]: the pictures, and how many.

    Raises:
        LaunchError: if there are none.
    """
    if source.is_dir():
        files = sorted(
            path
            for path in source.iterdir()
            if path.suffix.lower() in IMAGES and path.is_file()
        )
        if not files:
            raise LaunchError(
                f'{source} has no images, expected files that end with '
                f'{", ".join(sorted(IMAGES))}'
            )
        return (Frame(path.name, path) for path in files), len(files)
    if not source.is_file():
        raise LaunchError(f'{source} does not exist')
    if source.suffix.lower() not in VIDEOS:
        return iter([Frame(source.name, source)]), 1
    video = mmcv.VideoReader(str(source), cache_capacity=1)
    if not len(video):
        raise LaunchError(f'{source} has no frame that can be decoded')
    digits = len(str(len(video)))
    frames = (
        Frame(f'{source.name}.{index:0{digits}d}', source, pixels)
        for index, pixels in enumerate(video)
    )
    return frames, len(video)


def load_model(
    cfg: Config, checkpoint: str
) -> tuple[torch.nn.Module, list[str]]:
    """A model with all of its weights, and the names of its classes.

    Args:
        cfg (Config): the config.
        checkpoint (str): path or URL.

    Returns:
        tuple[nn.Module, list[str]]: the model in evaluation mode, and the
        names that its training run had.

    Raises:
        LaunchError: if the file doesn't fill the model or has no names.
    """
    from mmengine.model import revert_sync_batchnorm
    from mmengine.registry import MODELS

    init_default_scope(cfg.default_scope)
    cfg.model.backbone.init_cfg = None
    model = revert_sync_batchnorm(MODELS.build(cfg.model))
    content = _load_checkpoint(checkpoint, map_location='cpu')
    model.load_state_dict(check_complete(model, content))
    meta = (content.get('meta') or {}).get('dataset_meta') or {}
    classes = meta.get('classes') or meta.get('CLASSES')
    if not classes:
        raise LaunchError(
            f'{checkpoint} does not say the names of its classes '
            "(meta['dataset_meta']['classes']), as checkpoints of a training "
            'run do'
        )
    return model.to(get_device()).eval(), list(classes)


def _read(path: Path, load: dict) -> np.ndarray:
    """An image as the config's own loader decodes it, upright."""
    size = read_image(str(path), [load])
    if isinstance(size, str):
        raise ValueError(f'the file {size}')
    image = mmcv.imread(
        str(path),
        flag=load.get('color_type', 'color'),
        backend=load.get('imdecode_backend', 'cv2'),
    )
    return np.ascontiguousarray(image)


def _predict(model: torch.nn.Module, pipeline: Compose, pixels: np.ndarray):
    data = pipeline(
        dict(
            img=pixels,
            img_id=0,
            img_path=None,
            img_shape=pixels.shape[:2],
            ori_shape=pixels.shape[:2],
        )
    )
    if data is None:
        raise ValueError('the test pipeline gives nothing for it')
    with torch.no_grad():
        return model.test_step(pseudo_collate([data]))[0].cpu()


def _write(target: Path, frame: Frame, pixels, sample, result) -> None:
    """Drawing, mask and JSON beside each other, each whole or not at all."""
    height, width = pixels.shape[:2]
    record = dict(
        image=str(frame.path),
        height=height,
        width=width,
        **result.describe(sample),
    )
    drawn = result.draw(pixels[..., ::-1], sample)
    _write_image(target.with_name(f'{target.name}.png'), drawn[..., ::-1])
    mask = result.mask(sample)
    if mask is not None:
        _write_image(target.with_name(f'{target.name}.mask.png'), mask)
    text = json.dumps(record, indent=2) + '\n'
    write_atomically(target.with_name(f'{target.name}.json'), text.encode())


def _write_image(path: Path, pixels: np.ndarray) -> None:
    _, content = cv2.imencode('.png', np.ascontiguousarray(pixels))
    write_atomically(path, content.tobytes())


def report(failures: list[str]) -> None:
    """Ends the run with the pictures that failed, if any did.

    Args:
        failures (list[str]): what :func:`run` returned.

    Raises:
        LaunchError: names the first, and how many.
    """
    for failure in failures[1:]:
        print_log(failure, logger=None)
    if failures:
        raise LaunchError(
            f'{len(failures)} picture(s) failed, the others are done; '
            f'{failures[0]}'
        )

"""What a run reads: how many images, and of which size at most."""

import json
import math
import os
from functools import lru_cache

from mmengine.config import Config

from .config import data_loaders, name_of
from .report import ImageCount


def count_images(dataset) -> list[ImageCount]:
    """Counts the images of a data set that was built.

    Args:
        dataset (Dataset): a data set of mmengine, or a wrapper of some.

    Returns:
        list[ImageCount]: one for each wrapped data set.
    """
    if hasattr(dataset, 'datasets'):
        return [c for child in dataset.datasets for c in count_images(child)]
    if hasattr(dataset, 'dataset'):
        return count_images(dataset.dataset)
    kept = len(dataset)
    name = getattr(dataset, 'ann_file', '') or ''
    if not (hasattr(dataset, 'COCOAPI') and os.path.isfile(name)):
        prefix = getattr(dataset, 'data_prefix', None) or {}
        name = name or prefix.get('img_path') or type(dataset).__name__
        return [ImageCount(name, kept, kept)]
    total = _count_entries(name, os.path.getmtime(name))
    rule = dataset.filter_cfg or {}
    reasons = [
        f'filter_cfg.{key}'
        for key in ('filter_empty_gt', 'min_size')
        if rule.get(key) and not dataset.test_mode
    ]
    if dataset._indices is not None:
        reasons.append('indices')
    dropped = {f'by {" and ".join(reasons)}': total - kept}
    return [ImageCount(name, total, kept, dropped if total > kept else {})]


@lru_cache
def _count_entries(path: str, mtime: float) -> int:
    """How many images a COCO file lists; read once in a state (`mtime`)."""
    with open(path) as file:
        return len({entry['id'] for entry in json.load(file)['images']})


def largest_train_shape(cfg: Config) -> tuple[int, int] | None:
    """The largest batch that training can meet, in pixels.

    Args:
        cfg (Config): the whole config.

    Returns:
        tuple[int, int] | None: height and width with the padding of the
        batch; None if the pipelines set no size.
    """
    shapes = [
        shape
        for split, dataset, _ in data_loaders(cfg, 'train')
        if split == 'train' and (shape := _shape_of(dataset.get('pipeline')))
    ]
    if not shapes:
        return None
    height, width = (max(sides) for sides in zip(*shapes, strict=True))
    preprocessor = cfg.model.get('data_preprocessor') or {}
    if preprocessor.get('size'):  # mmseg pads to it
        size = preprocessor['size']
        height, width = max(height, size[0]), max(width, size[1])
    unit = preprocessor.get('pad_size_divisor') or 1
    return tuple(math.ceil(side / unit) * unit for side in (height, width))


def _shape_of(pipeline, shape: tuple | None = None) -> tuple | None:
    """Height and width that a pipeline can end with; None if unknown."""
    for transform in pipeline or []:
        name = name_of(transform)
        scales = transform.get('scales') or transform.get('scale')
        if 'transforms' in transform:
            # Alternatives of RandomChoice, or what may be applied or not.
            choices = transform['transforms']
            choices = choices if name == 'RandomChoice' else [choices, []]
            shape = _largest([_shape_of(c, shape) for c in choices])
        elif name in _RESIZES and isinstance(scales, (list, tuple)):
            one = isinstance(scales[0], (int, float))
            scales = [scales] if one else scales
            shape = _largest([_scaled(scale, transform) for scale in scales])
        elif name == 'RandomCrop' and shape and not _is_vague(transform):
            crop = transform['crop_size']
            shape = tuple(min(a, b) for a, b in zip(shape, crop, strict=True))
    return shape


_RESIZES = ('Resize', 'RandomChoiceResize', 'RandomResize')


def _is_vague(crop: dict) -> bool:
    """Whether a crop says no size in pixels that it keeps to."""
    size = crop.get('crop_size')
    kind = crop.get('crop_type', 'absolute')
    return kind != 'absolute' or not isinstance(size, (list, tuple))


def _largest(shapes: list) -> tuple | None:
    known = [shape for shape in shapes if shape]
    if not known:
        return None
    return tuple(max(sides) for sides in zip(*known, strict=True))


def _scaled(scale, transform: dict) -> tuple[int, int]:
    """Height and width that one scale, (width, height), can give."""
    largest = max(transform.get('ratio_range') or (1.0,))
    width, height = (round(side * largest) for side in scale)
    if transform.get('keep_ratio'):
        # Landscape and portrait in one batch: both sides may be long.
        return max(width, height), max(width, height)
    return height, width

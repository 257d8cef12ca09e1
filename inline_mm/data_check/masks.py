"""Checks of ADE-style data sets: a mask of labels beside each image.

They follow what mmseg's BaseSegDataset and LoadAnnotations do with them.
"""

import os
from collections import Counter

import mmcv
import numpy as np

from .config import find_transform, name_of, transforms
from .images import SECONDS, check_exist, check_image, describe_missing, pick
from .labels import Labels
from .report import Findings, ImageCount, Progress, quote


def is_seg(dataset) -> bool:
    """Whether a data set lists its files as mmseg's BaseSegDataset does.

    Args:
        dataset (BaseDataset): the data set.

    Returns:
        bool: False for subclasses with another way of their own.
    """
    method = type(dataset).load_data_list
    return (
        method.__qualname__ == 'BaseSegDataset.load_data_list'
        and method.__module__.startswith('mmseg.')
    )


def check_seg(
    dataset, cfg: dict, metrics: list, classes: tuple, found: Findings, number
) -> None:
    """Checks an ADE-style data set.

    Args:
        dataset (BaseDataset): built without reading its files.
        cfg (dict): its config.
        metrics (list[dict]): configs of the metrics it is measured by; empty
            for training.
        classes (tuple[str]): its classes.
        found (Findings): takes the findings.
        number (int | None): how many pairs to read; None for all.
    """
    pipeline = cfg.get('pipeline')
    check_flag(dataset, pipeline, found)
    pairs = list_pairs(dataset, found)
    if not pairs:
        return
    place = dataset.data_prefix.get('img_path')
    count = ImageCount(place, len(pairs), len(pairs))
    if isinstance(dataset._indices, int) and dataset._indices < len(pairs):
        count.kept = dataset._indices
        count.dropped['by indices'] = len(pairs) - dataset._indices
    found.report.counts.append(count)
    if not check_exist([image for image, _ in pairs], 'images', found):
        return
    metrics = [m for m in metrics if name_of(m) == 'IoUMetric']
    measured = any(not m.get('format_only') for m in metrics)
    if pairs[0][1] is None or not (found.name == 'train' or measured):
        return
    if not check_exist([mask for _, mask in pairs], 'masks', found):
        _hint_suffix(dataset, pairs, found)
        return
    read_pairs(dataset, pairs, pipeline, classes, found, number)
    found.flush(place)


def check_flag(dataset, pipeline, found: Findings) -> None:
    """Compares the two places of ``reduce_zero_label``.

    Args:
        dataset (BaseDataset): built without reading its files.
        pipeline (list): its pipeline.
        found (Findings): takes the fault.
    """
    for transform in transforms(pipeline):
        flag = transform.get('reduce_zero_label')
        if name_of(transform) != 'LoadAnnotations' or flag is None:
            continue
        if bool(flag) != bool(dataset.reduce_zero_label):
            found.fault(
                f'reduce_zero_label is {dataset.reduce_zero_label} in the '
                f'data set ({type(dataset).__name__}) but {flag} in its '
                'LoadAnnotations; mmseg wants them equal: set it in the data '
                'set alone'
            )


def list_pairs(dataset, found: Findings) -> list[tuple[str, str | None]]:
    """Lists images and masks as the data set does.

    Args:
        dataset (BaseDataset): built without reading its files.
        found (Findings): takes the fault.

    Returns:
        list[tuple[str, str | None]]: the paths; empty if there is a fault.
    """
    folders = {
        key: dataset.data_prefix.get(key)
        for key in ('img_path', 'seg_map_path')
    }
    for key, folder in folders.items():
        if folder and not os.path.isdir(folder):
            found.fault(f'data_prefix.{key}: {describe_missing(folder)}')
    if found.report.faults and not all(
        os.path.isdir(folder) for folder in folders.values() if folder
    ):
        return []
    if dataset.ann_file and not os.path.exists(dataset.ann_file):
        found.fault(f'the list of images {describe_missing(dataset.ann_file)}')
        return []
    listed = dataset.load_data_list()
    if not listed:
        place = folders['img_path']
        names = [n for _, _, files in os.walk(place) for n in files]
        endings = Counter(os.path.splitext(name)[1] for name in names)
        hint = (
            f'; it has {quote(e for e, _ in endings.most_common(3))}: set '
            'img_suffix of the data set'
            if names
            else '; it is empty'
        )
        found.fault(
            f'no file in {place} ends with {dataset.img_suffix!r}{hint}'
        )
    return [(item['img_path'], item.get('seg_map_path')) for item in listed]


def _hint_suffix(dataset, pairs, found: Findings) -> None:
    """Are the missing masks there under another ending?"""
    image, mask = next(p for p in pairs if not os.path.isfile(p[1]))
    folder = os.path.dirname(mask)
    stem = os.path.basename(mask).removesuffix(dataset.seg_map_suffix)
    near = [
        name
        for name in (os.listdir(folder) if os.path.isdir(folder) else ())
        if name.startswith(stem)
    ]
    if near:
        found.report.faults[-1] += (
            f'; the folder has {near[0]!r} for {os.path.basename(image)}: set '
            'seg_map_suffix of the data set if that is the mask'
        )


def read_pairs(dataset, pairs, pipeline, classes, found, number) -> None:
    """Reads a sample of the pairs and checks labels and sizes.

    Args:
        dataset (BaseDataset): built without reading its files.
        pairs (list[tuple[str, str]]): paths of images and masks.
        pipeline (list): the data set's pipeline.
        classes (tuple[str]): its classes.
        found (Findings): takes the findings.
        number (int | None): how many to read; None for all.
    """
    sample = pick(pairs, number)
    progress = Progress(f'{found.name} images and masks', len(sample))
    backend = find_transform(pipeline, 'LoadAnnotations').get(
        'imdecode_backend', 'pillow'
    )
    labels = Labels(dataset, classes, found)
    for image, path in sample:
        mask = read_mask(path, backend, found)
        size = check_image(image, pipeline, found)
        if mask is not None:
            _compare_sizes(image, size, path, mask, found)
            labels.add(mask, path)
        progress.step()
        if number is not None and progress.seconds > SECONDS:
            break
    found.report.files_read += 2 * progress.done
    found.report.files_seen += 2 * len(pairs)
    labels.conclude(progress.done)


def read_mask(path: str, backend: str, found: Findings):
    """Decodes a mask as mmseg's LoadAnnotations does.

    Args:
        path (str): the file.
        backend (str): the decoder.
        found (Findings): takes the fault.

    Returns:
        np.ndarray | None: shape (H, W), integers; None if it isn't that.
    """
    with open(path, 'rb') as file:
        content = file.read()
    try:
        mask = mmcv.imfrombytes(content, flag='unchanged', backend=backend)
        mask = np.atleast_2d(mask.squeeze())
    except Exception:  # each decoder has its own kinds
        found.tally('masks can not be decoded', path, fault=True)
        return None
    if mask.ndim != 2:
        gray = (mask[..., :1] == mask[..., :3]).all()
        kind = (
            'with three equal channels; save one of them'
            if gray
            else 'in colours; save the label of each pixel instead'
        )
        found.tally(
            f'masks are images of {mask.shape[-1]} channels {kind} as an '
            '8-bit gray PNG',
            path,
            fault=True,
        )
        return None
    if content[:2] == b'\xff\xd8':
        found.tally(
            'masks are JPEG files, which smear labels; save masks as PNG',
            path,
            fault=True,
        )
        return None
    if mask.dtype.kind == 'f':
        found.tally('masks hold fractions, not labels', path, fault=True)
        return None
    return mask.astype(np.int64)


def _compare_sizes(image, size, path, mask, found) -> None:
    if size not in (None, mask.shape):
        found.tally(
            'masks differ in size from their image (turned by an EXIF tag, '
            'perhaps)',
            f'{path}, {mask.shape[1]}x{mask.shape[0]}, where {image} is '
            f'{size[1]}x{size[0]} when loaded',
            fault=True,
        )

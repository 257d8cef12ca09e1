"""Checks of COCO-style data sets: one JSON file for all images.

They follow what mmdet's CocoDataset and CocoMetric do with such a file.
"""

import os

from .annotations import check_annotations
from .coco_file import check_categories, check_listed_images, read_json
from .config import find_transform, name_of
from .images import check_exist, check_images
from .report import Findings, ImageCount

METHODS = ('load_data_list', 'parse_data_info', 'filter_data')


def is_coco(dataset) -> bool:
    """Whether a data set reads its file as CocoDataset does.

    Args:
        dataset (BaseDataset): the data set.

    Returns:
        bool: False for subclasses with another way of their own.
    """
    return hasattr(dataset, 'COCOAPI') and all(
        getattr(type(dataset), method).__qualname__ == f'CocoDataset.{method}'
        for method in METHODS
    )


def count_kept(
    dataset, images: dict, with_object: set, path: str
) -> ImageCount:
    """Counts what mmdet's ``CocoDataset.filter_data`` leaves.

    Args:
        dataset (BaseDataset): built without reading its files.
        images (dict): the images by id.
        with_object (set): ids of images with an annotation of the classes.
        path (str): the file.

    Returns:
        ImageCount: the numbers and the reasons.
    """
    rule = {} if dataset.test_mode else dataset.filter_cfg or {}
    empty = small = 0
    side = rule.get('min_size', 0)
    for key, entry in images.items():
        if rule.get('filter_empty_gt') and key not in with_object:
            empty += 1
        elif min(entry['height'], entry['width']) < side:
            small += 1
    kept = len(images) - empty - small
    dropped = {
        'without objects (filter_cfg.filter_empty_gt)': empty,
        f'with a side below filter_cfg.min_size={side}': small,
    }
    if isinstance(dataset._indices, int) and 0 <= dataset._indices < kept:
        dropped['by indices'] = kept - dataset._indices
        kept = dataset._indices
    dropped = {reason: number for reason, number in dropped.items() if number}
    return ImageCount(path, len(images), kept, dropped)


def check_coco(
    dataset, cfg: dict, metrics: list, classes: tuple, found: Findings, number
) -> None:
    """Checks a COCO-style data set.

    Args:
        dataset (BaseDataset): built without reading its files.
        cfg (dict): its config.
        metrics (list[dict]): configs of the metrics it is measured by; empty
            for training.
        classes (tuple[str]): its classes.
        found (Findings): takes the findings.
        number (int | None): how many images to read; None for all.
    """
    path = dataset.ann_file
    data = read_json(path, found)
    categories = data and check_categories(data, classes, path, found)
    images = categories and check_listed_images(data, path, found)
    if not images:
        return
    metrics = [m for m in metrics if name_of(m) == 'CocoMetric']
    measured = any(not m.get('format_only') for m in metrics)
    trained = found.name == 'train'
    if 'annotations' not in data and (trained or measured):
        found.fault(
            f"{path} has no list 'annotations', so that nothing can be "
            + (
                'learned from it'
                if trained
                else 'measured; to write predictions only, set format_only='
                'True and outfile_prefix in the evaluator'
            )
        )
        return
    masks = find_transform(cfg.get('pipeline'), 'LoadAnnotations')
    segm = any('segm' in m.get('metric', ()) for m in metrics)
    if 'annotations' in data:
        objects = check_annotations(
            data['annotations'],
            images,
            {key: name in classes for key, name in categories.items()},
            found,
            train_masks=trained and bool(masks.get('with_mask')),
            metric='segm' if measured and segm else measured and 'bbox',
        )
        count = count_kept(dataset, images, objects.listed, path)
        found.report.counts.append(count)
        if found.flush(path):
            _check_objects(count, objects, found, trained, measured)
    found.flush(path)
    prefix = dataset.data_prefix.get('img') or ''
    files = [
        (os.path.join(prefix, e['file_name']), (e['height'], e['width']))
        for e in images.values()
    ]
    if check_exist([file for file, _ in files], 'images', found):
        check_images(files, cfg.get('pipeline'), found, number)
        found.flush(path)
    for metric in metrics:
        check_metric(metric, path, images, found)


def _check_objects(count, objects, found, trained, measured) -> None:
    """Is there anything to learn from, or to measure against?"""
    path = count.name
    if trained and not objects.usable:
        found.fault(
            f'no image of {path} has an object of the classes that can be '
            'learned from'
        )
    elif trained and not count.kept:
        found.fault(f'nothing is left to learn from: {count}')
    elif measured and not objects.usable:
        found.fault(
            f'{path} has no object of the classes to measure against; to '
            'write predictions only, set format_only=True and outfile_prefix '
            'in the evaluator'
        )
    elif trained:
        bare = len(objects.listed - objects.usable)
        if bare:
            found.odd(
                f'{path}: images have annotations but no object to learn '
                f'from, only crowds or boxes that are left out ({bare} in all)'
            )


def check_metric(
    metric: dict, path: str, images: dict, found: Findings
) -> None:
    """Checks that a metric reads the annotations of the data set.

    Args:
        metric (dict): config of the metric.
        path (str): the data set's annotation file.
        images (dict): its images by id.
        found (Findings): takes the fault.
    """
    other = metric.get('ann_file')
    if not isinstance(other, str) or '://' in other:
        return
    if os.path.exists(other) and os.path.samefile(other, path):
        return
    data = read_json(other, found)
    if data is None:
        return
    ids = {entry.get('id') for entry in data['images']}
    lacking = [key for key in images if key not in ids]
    if lacking:
        found.fault(
            f'the evaluator measures against {other}, which lacks '
            f'{len(lacking)} of the {len(images)} images of {path}; set '
            f'{found.name}_evaluator.ann_file to the file of the data set'
        )

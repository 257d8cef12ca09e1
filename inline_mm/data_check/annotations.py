"""Checks of COCO annotations: fields, boxes, polygons and run-length masks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul

from .report import Findings, Progress


@dataclass
class Objects:
    """Which images have something.

    Attributes:
        listed (set): ids of images with an annotation of the classes.
        usable (set): ids of those with an object that is learned from or
            measured against.
    """

    listed: set = field(default_factory=set)
    usable: set = field(default_factory=set)


def check_annotations(
    annotations: Sequence[dict],
    images: dict,
    categories: dict,
    found: Findings,
    train_masks: bool,
    metric: str | bool,
) -> Objects:
    """Checks every annotation of a file.

    Args:
        annotations (Sequence[dict]): the annotations.
        images (dict): the images by id.
        categories (dict[int, bool]): whether a category is one of the
            config's classes, by id.
        found (Findings): takes the findings.
        train_masks (bool): whether masks are learned.
        metric (str | bool): 'bbox' or 'segm' if they are measured against,
            False if not.

    Returns:
        Objects: the images with objects.
    """
    needed = ['id', 'image_id', 'category_id', 'bbox', 'area']
    needed += ['iscrowd'] if metric else []
    needed += ['segmentation'] if train_masks or metric == 'segm' else []
    objects, ids = Objects(), set()
    progress = Progress(f'{found.name} annotations', len(annotations))
    for annotation in annotations:
        progress.step()
        if not _check_fields(annotation, needed, ids, found):
            continue
        image = images.get(annotation['image_id'])
        if image is None:
            found.tally(
                'annotations belong to images that are not listed; left out',
                f'{_name(annotation)}, image_id {annotation["image_id"]!r}',
            )
            continue
        wanted = categories.get(annotation['category_id'])
        if wanted is None:
            found.tally(
                'annotations have a category_id that the file does not '
                'define; left out',
                f'{_name(annotation)}, category_id '
                f'{annotation["category_id"]!r}',
            )
        elif not wanted:
            found.tally(
                'annotations are of categories that are not among the '
                'classes; left out',
                _name(annotation),
            )
        if not wanted:
            continue
        objects.listed.add(annotation['image_id'])
        used = check_box(annotation, image, found)
        needs_mask = (used and train_masks) or metric == 'segm'
        if needs_mask:
            used = (
                check_mask(annotation, image, found, metric == 'segm') and used
            )
        if used and not annotation.get('iscrowd'):
            objects.usable.add(annotation['image_id'])
    return objects


def _name(annotation: dict) -> str:
    return f'annotation {annotation["id"]!r}'


def _check_fields(annotation, needed: list, ids: set, found) -> bool:
    """Are all fields there, and the id the only one of its kind?"""
    if not isinstance(annotation, dict):
        found.tally(
            'annotations are no objects', repr(annotation)[:60], fault=True
        )
        return False
    lacking = [key for key in needed if key not in annotation]
    if lacking:
        # One line for each field: a file may lack several.
        for key in lacking:
            found.tally(
                f'annotations have no {key!r}, which mmdet needs here',
                f'annotation {annotation.get("id", "without id")!r}',
                fault=True,
            )
        return False
    if annotation['id'] in ids:
        found.tally(
            'annotations have the id of another one; give each its own',
            _name(annotation),
            fault=True,
        )
    ids.add(annotation['id'])
    return True


def check_box(annotation: dict, image: dict, found: Findings) -> bool:
    """Checks a box, [x, y, width, height].

    Args:
        annotation (dict): its annotation.
        image (dict): the entry of its image.
        found (Findings): takes the findings.

    Returns:
        bool: whether mmdet uses it.
    """
    box, area = annotation['bbox'], annotation['area']
    example = f'{_name(annotation)}, bbox {box}'
    numbers = isinstance(box, (list, tuple)) and len(box) == 4
    numbers = numbers and all(isinstance(v, (int, float)) for v in box)
    if not numbers or not isinstance(area, (int, float)):
        found.tally(
            'boxes are not [x, y, width, height] with an area',
            f'{example}, area {area!r}',
            fault=True,
        )
        return False
    if not all(map(math.isfinite, (*box, area))):
        found.tally(
            'boxes or areas are not finite numbers; mend or delete them',
            f'{example}, area {area}',
            fault=True,
        )
        return False
    x, y, w, h = box
    right, bottom = image['width'], image['height']
    if w <= 0 or h <= 0:
        kind = 'boxes have a zero or negative side'
    elif min(x + w, right) <= max(x, 0) or min(y + h, bottom) <= max(y, 0):
        kind = 'boxes lie outside of their image'
    elif w < 1 or h < 1:
        kind = 'boxes are smaller than a pixel'
    elif area <= 0:
        kind = "annotations have an 'area' of zero or less"
    else:
        beyond = max(-x, -y, x + w - right, y + h - bottom)
        if beyond > 1:
            found.tally(
                'boxes reach beyond their image (COCO boxes are [x, y, width, '
                'height], not two corners)',
                f'{example} in an image of {right}x{bottom}',
            )
        return True
    found.tally(f'{kind}; left out', example)
    return False


def check_mask(
    annotation: dict, image: dict, found: Findings, measured: bool
) -> bool:
    """Checks a mask: polygons or a run-length encoding.

    Args:
        annotation (dict): its annotation.
        image (dict): the entry of its image.
        found (Findings): takes the findings.
        measured (bool): whether it is measured against, where pycocotools
            reads every mask, rather than learned.

    Returns:
        bool: whether it is used.
    """
    mask, name = annotation['segmentation'], _name(annotation)
    if not mask:
        found.tally(
            "annotations have an empty 'segmentation', at which mmdet would "
            'stop; delete them or give them a polygon',
            name,
            fault=True,
        )
        return False
    if isinstance(mask, dict):
        size = mask.get('size'), isinstance(mask.get('counts'), (list, str))
        if size != ([image['height'], image['width']], True):
            found.tally(
                "run-length masks lack 'counts' or have another size than "
                'their image',
                f'{name}, size {mask.get("size")} for height and width '
                f'[{image["height"]}, {image["width"]}]',
                fault=True,
            )
            return False
        return True
    try:
        # The sum finds what is no number, and passes NaN and infinity on.
        totals = [sum(polygon) for polygon in mask]
    except TypeError:
        found.tally(
            "annotations have a 'segmentation' that is neither a list of "
            'polygons [x1, y1, x2, y2, ...] nor a run-length encoding',
            f'{name}: {str(mask)[:60]}',
            fault=True,
        )
        return False
    if not all(map(math.isfinite, totals)):
        found.tally(
            'polygons have coordinates that are not finite numbers', name, True
        )
        return False
    return _check_polygons(mask, image, name, found, measured)


def _check_polygons(mask, image, name, found, measured) -> bool:
    """Checks the polygons of one object."""
    valid = [p for p in mask if len(p) % 2 == 0 and len(p) >= 6]
    if measured and len(mask[0]) < 4:
        found.tally(
            'annotations begin with a polygon of fewer than two points, at '
            'which the evaluation would stop; delete it',
            name,
            fault=True,
        )
        return False
    if len(valid) < len(mask):
        found.tally(
            'annotations have polygons of fewer than three points or of an '
            'odd number of coordinates; these polygons are left out',
            name,
        )
    if not valid:
        return False
    if not any(_area(p) > 0 for p in valid):
        found.tally('annotations have polygons without an area', name)
    elif not any(
        min(p[::2]) < image['width']
        and max(p[::2]) > 0
        and min(p[1::2]) < image['height']
        and max(p[1::2]) > 0
        for p in valid
    ):
        found.tally('annotations have polygons outside of their image', name)
    return True


def _area(polygon: Sequence[float]) -> float:
    """Area of a polygon [x1, y1, x2, y2, ...] by the shoelace formula."""
    xs, ys = polygon[::2], polygon[1::2]
    forward = sum(map(mul, xs, [*ys[1:], ys[0]]))
    return 0.5 * abs(forward - sum(map(mul, [*xs[1:], xs[0]], ys)))

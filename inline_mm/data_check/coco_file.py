"""A COCO annotation file: readable, its categories, its list of images."""

import json
import os
from collections import Counter

from mmengine.logging import print_log

from .images import describe_missing
from .report import Findings, quote


def read_json(path: str, found: Findings) -> dict | None:
    """Reads an annotation file.

    Args:
        path (str): the file.
        found (Findings): takes the fault.

    Returns:
        dict | None: its content; None if it isn't usable.
    """
    if not os.path.isfile(path):
        found.fault(
            f'the annotation file {path} is a folder; give the JSON file'
            if os.path.isdir(path)
            else f'the annotation file {describe_missing(path)}'
        )
        return None
    megabytes = os.path.getsize(path) / 1e6
    if megabytes > 50:
        print_log(
            f'data check: reading {path}, {megabytes:.0f} MB', logger='current'
        )
    try:
        # pycocotools reads without an encoding as well.
        with open(path) as file:
            data = json.load(file)
    except json.JSONDecodeError as error:
        bom = 'BOM' in error.msg
        found.fault(
            f'{path} begins with a byte order mark (BOM), which mmdet can not '
            'read; save it as UTF-8 without BOM'
            if bom
            else f'{path} is no valid JSON: {error.msg} in line '
            f'{error.lineno}, column {error.colno} (an incomplete copy?)'
        )
        return None
    except UnicodeDecodeError as error:
        found.fault(f'{path} is no text in this encoding: {error.reason}')
        return None
    if not isinstance(data, dict):
        found.fault(
            f'{path} holds a {type(data).__name__}, expected an object with '
            "the keys 'images', 'annotations' and 'categories'"
        )
        return None
    for key in ('images', 'categories'):
        if not isinstance(data.get(key), list) or not data[key]:
            state = 'an empty' if key in data else 'no'
            found.fault(f'{path} has {state} list {key!r}')
            return None
    return data


def check_categories(
    data: dict, classes: tuple, path: str, found: Findings
) -> dict | None:
    """Compares the categories of a file with the classes of a config.

    mmdet numbers the classes in the file's order, so the order counts, too.

    Args:
        data (dict): content of the file.
        classes (tuple[str]): the config's classes.
        path (str): the file.
        found (Findings): takes the faults.

    Returns:
        dict[int, str] | None: name by id; None if they don't fit.
    """
    try:
        ids = [category['id'] for category in data['categories']]
        names = [category['name'] for category in data['categories']]
    except (KeyError, TypeError):
        found.fault(f"{path}: each category needs an 'id' and a 'name'")
        return None
    for what, values in (('id', ids), ('name', names)):
        doubled = [v for v, n in Counter(values).items() if n > 1]
        if doubled:
            found.fault(
                f'{path}: two categories have the {what} {doubled[0]!r}'
            )
            return None
    both = f'the file has {quote(names)}, the config {quote(classes)}'
    absent = [name for name in classes if name not in names]
    if absent:
        near = {name.strip().lower(): name for name in names}
        match = near.get(absent[0].strip().lower())
        hint = (
            f' (but {match!r}: upper and lower case and blanks count)'
            if match
            else ''
        )
        found.fault(
            f'{path} has no category {absent[0]!r}{hint}; class names must '
            f'be the same: {both}; set metainfo=dict(classes=(...)) of the '
            'data set'
        )
        return None
    order = tuple(name for name in names if name in classes)
    if order != classes:
        found.fault(
            f'the classes are in another order than in {path}, by which mmdet '
            f'numbers them: {both}; write the classes in the order of the file'
        )
        return None
    return dict(zip(ids, names, strict=True))


def check_listed_images(data: dict, path: str, found: Findings) -> dict | None:
    """Checks the list of images.

    Args:
        data (dict): content of the file.
        path (str): the file.
        found (Findings): takes the faults.

    Returns:
        dict | None: the entries by id, as pycocotools keeps them; None if
        they can't be used.
    """
    by_id: dict = {}
    for entry in data['images']:
        keys = ('id', 'file_name', 'height', 'width')
        lacking = [k for k in keys if k not in entry]
        if lacking:
            found.fault(
                f'{path}: an image has no {lacking[0]!r}: '
                f'{json.dumps(entry)[:120]}'
            )
            return None
        sides = entry['height'], entry['width']
        if not all(isinstance(s, (int, float)) and s > 0 for s in sides):
            found.tally(
                'images have no positive height and width',
                f'{entry["file_name"]}, {sides[1]}x{sides[0]}',
                fault=True,
            )
        other = by_id.setdefault(entry['id'], entry)
        if other is not entry:
            same = other['file_name'] == entry['file_name']
            found.tally(
                'images are listed twice (used once)'
                if same
                else 'images share the id of another image',
                f'id {entry["id"]!r}, {entry["file_name"]}',
                fault=not same,
            )
    return by_id

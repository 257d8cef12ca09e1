"""Files of images: there, readable, of the size that is said."""

import os
from collections.abc import Sequence

import mmcv

from .config import find_transform
from .report import Findings, Progress

SAMPLE = 512
SECONDS = 30.0


def is_local(dataset) -> bool:
    """Whether a data set reads plain files.

    Args:
        dataset (BaseDataset): the data set.

    Returns:
        bool: False for another backend or a URL.
    """
    backend = (getattr(dataset, 'backend_args', None) or {}).get('backend')
    prefixes = [dataset.ann_file, *(dataset.data_prefix or {}).values()]
    remote = any(isinstance(p, str) and '://' in p for p in prefixes)
    return backend in (None, 'local', 'disk') and not remote


def describe_missing(path: str) -> str:
    """Says from where on a path doesn't exist.

    Args:
        path (str): a path that doesn't exist.

    Returns:
        str: a sentence without its end.
    """
    parent = os.path.abspath(path)
    while not os.path.exists(parent):
        missing, parent = parent, os.path.dirname(parent)
    text = f'{path} does not exist'
    if not os.path.isabs(path):
        text += ', seen from the current folder'
    if not os.path.isabs(path) or os.path.abspath(path) != missing:
        text += f' ({parent} has no {os.path.basename(missing)!r})'
    return text


def check_exist(paths: Sequence[str], what: str, found: Findings) -> bool:
    """Checks that files exist, folder by folder.

    Args:
        paths (Sequence[str]): the files.
        what (str): what they are, in the plural.
        found (Findings): takes the fault.

    Returns:
        bool: whether all exist.
    """
    folders: dict[str, set[str]] = {}
    missing = []
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in folders:
            there = os.path.isdir(folder or '.')
            folders[folder] = set(os.listdir(folder or '.')) if there else ()
        # Some file systems don't tell upper from lower case.
        if name not in folders[folder] and not os.path.isfile(path):
            missing.append(path)
    if missing:
        found.fault(
            f'{len(missing)} of {len(paths)} {what} are missing, first: '
            f'{describe_missing(missing[0])}'
        )
    return not missing


def pick(items: Sequence, number: int | None) -> list:
    """Draws evenly spaced items.

    Args:
        items (Sequence): all of them.
        number (int | None): how many at most; None for all.

    Returns:
        list: the items drawn.
    """
    if number is None or len(items) <= number:
        return list(items)
    return [items[i * len(items) // number] for i in range(number)]


def read_image(path: str, pipeline) -> tuple[int, int] | str:
    """Decodes an image the way a pipeline does.

    Args:
        path (str): the file.
        pipeline (list): the data set's pipeline.

    Returns:
        tuple[int, int] | str: height and width, or what is wrong.
    """
    load = find_transform(pipeline, 'LoadImageFromFile')
    with open(path, 'rb') as file:
        content = file.read()
    if not content:
        return 'is empty'
    try:
        image = mmcv.imfrombytes(
            content,
            flag=load.get('color_type', 'color'),
            backend=load.get('imdecode_backend', 'cv2'),
        )
    except Exception:  # each decoder has its own kinds
        image = None
    if image is None:
        if content.lstrip()[:1] == b'<':
            return 'is a web page or XML'
        jpeg = content[:2] == b'\xff\xd8'
        cut = jpeg and b'\xff\xd9' not in content[-4096:]
        return 'is cut short' if cut else 'can not be decoded'
    return image.shape[:2]


def check_images(
    images: Sequence[tuple[str, tuple[int, int]]],
    pipeline,
    found: Findings,
    number: int | None,
) -> None:
    """Decodes a sample of the images and compares their sizes.

    Args:
        images (Sequence[tuple[str, tuple[int, int]]]): path, and height and
            width as the annotations have them.
        pipeline (list): the data set's pipeline.
        found (Findings): takes the findings.
        number (int | None): how many to read; None for all, however long
            that takes.
    """
    sample = pick(images, number)
    progress = Progress(f'{found.name} images', len(sample))
    for path, said in sample:
        size = check_image(path, pipeline, found)
        if size is not None and min(said) > 0:
            _compare_sizes(path, size, said, found)
        progress.step()
        if number is not None and progress.seconds > SECONDS:
            break
    found.report.files_read += progress.done
    found.report.files_seen += len(images)


def check_image(path: str, pipeline, found: Findings) -> tuple | None:
    """Decodes one image.

    Args:
        path (str): the file.
        pipeline (list): the data set's pipeline.
        found (Findings): takes the findings.

    Returns:
        tuple[int, int] | None: height and width; None if it can't be read.
    """
    size = read_image(path, pipeline)
    if isinstance(size, str):
        found.tally(
            'images can not be read; take them out or replace them',
            f'{path}, which {size}',
            fault=True,
        )
        return None
    side = _short_side(size, pipeline)
    if side is not None and side < found.smallest_side:
        found.tally(
            f'images have a side below {found.smallest_side} pixels after '
            'their Resize, too small for the backbone; take them out or pad '
            'them (model.data_preprocessor)',
            f'{path}, {size[1]}x{size[0]}, whose short side becomes {side}',
            fault=True,
        )
    return size


def _short_side(size: tuple, pipeline) -> int | None:
    """The short side after a pipeline's Resize; None if that is random."""
    scale = find_transform(pipeline, 'Resize').get('scale')
    if not isinstance(scale, (list, tuple)):
        return None
    if not find_transform(pipeline, 'Resize').get('keep_ratio'):
        return min(scale)
    return min(mmcv.rescale_size(size[::-1], tuple(scale)))


def _compare_sizes(path: str, size: tuple, said: tuple, found) -> None:
    """Compares an image's size with that of its annotations."""
    difference = max(abs(a - b) for a, b in zip(size, said, strict=True))
    if not difference:
        return
    example = (
        f'{path}, {size[1]}x{size[0]} when loaded, {said[1]}x{said[0]} in the '
        'annotations'
    )
    if difference <= 1:
        found.tally('images differ in size by a pixel', example)
    elif size == tuple(said[::-1]):
        found.tally(
            'images have width and height exchanged, so that boxes would be '
            'in the wrong place (if the file is turned by its EXIF tag and '
            "the boxes are not: color_type='color_ignore_orientation' in "
            'LoadImageFromFile)',
            example,
            fault=True,
        )
    else:
        found.tally(
            'images have another size than the annotations say, so that boxes '
            'would be in the wrong place',
            example,
            fault=True,
        )

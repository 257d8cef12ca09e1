"""A data set of drawn shapes, for experiments that need no download.

A class is a form with a texture. Colours are random, another form has the
same textures, the same forms also come plain, and the background is faintly
textured likewise: neither colour, nor form, nor texture alone tells a class.
"""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import cv2
import numpy as np

FORMS = ('disk', 'bar')
TEXTURES = ('striped', 'checked')
CLASSES = tuple(f'{texture} {form}' for form in FORMS for texture in TEXTURES)
SPLITS = ('train', 'val')
MOST_HIDDEN = 0.4  # share of a form that later ones may cover
ABOUT = 'shapes.json'
# Corners of the forms as complex numbers, at most 1 from the centre.
OUTLINES = dict(
    disk=np.exp(2j * np.pi * np.arange(24) / 24),
    triangle=np.exp(2j * np.pi * np.arange(3) / 3),
    bar=np.array([1 - 0.35j, 1 + 0.35j, -1 + 0.35j, -1 - 0.35j]) / 1.06,
)


@dataclass(frozen=True)
class ShapesConfig:
    """What a data set of shapes is like.

    Args:
        size (int): side of the images, in pixels. Defaults to 64.
        train (int): number of training images. Defaults to 2000.
        val (int): number of validation images. Defaults to 300.
        radius (tuple[int, int]): least and greatest radius of a form, in
            pixels. Defaults to (10, 17).
        objects (tuple[int, int]): least and greatest number of forms with a
            class; fewer where no place is left. Defaults to (2, 3).
        distractors (int): forms without a class. Defaults to 1.
        seed (int): of all images. Defaults to 0.
    """

    size: int = 64
    train: int = 2000
    val: int = 300
    radius: tuple[int, int] = (10, 17)
    objects: tuple[int, int] = (2, 3)
    distractors: int = 1
    seed: int = 0


def draw_image(
    cfg: ShapesConfig, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Draws one image.

    Args:
        cfg (ShapesConfig): what the images are like.
        rng (np.random.Generator): source of all chance.

    Returns:
        tuple: image (size, size, 3) uint8; for each pixel the number of the
        form that is seen there (size, size) int32, 0 for none; the class of
        form 1, 2, ..., an index of `CLASSES`, or -1 for a distractor.
    """
    image = _paint(cfg.size, rng, rng.choice(['plain', *TEXTURES]), (8, 20))
    owner = np.zeros((cfg.size, cfg.size), np.int32)
    areas: list[int] = []
    classes: list[int] = []
    count = rng.integers(cfg.objects[0], cfg.objects[1] + 1)
    wanted = [*rng.integers(len(CLASSES), size=count), *[-1] * cfg.distractors]
    for index in rng.permutation(wanted):
        form, texture = _appearance(int(index), rng)
        for _ in range(10):
            mask = _draw_form(cfg, rng, form)
            seen = np.where(mask, len(areas) + 1, owner)
            visible = np.bincount(seen.ravel(), minlength=len(areas) + 2)[1:]
            areas_with = np.array([*areas, mask.sum()])
            if (visible >= (1 - MOST_HIDDEN) * areas_with).all():
                break
        else:
            continue  # no place left
        owner = seen
        areas.append(int(mask.sum()))
        classes.append(int(index))
        image[mask] = _paint(cfg.size, rng, texture, (40, 70))[mask]
    noise = rng.normal(0, 6, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8), owner, classes


def _appearance(index: int, rng: np.random.Generator) -> tuple[str, str]:
    """Form and texture of a class, or of a distractor."""
    if index >= 0:
        texture, form = CLASSES[index].split()
        return form, texture
    if rng.random() < 0.5:
        return 'triangle', rng.choice(TEXTURES)
    return rng.choice(FORMS), 'plain'


def _draw_form(
    cfg: ShapesConfig, rng: np.random.Generator, form: str
) -> np.ndarray:
    """Pixels of a form anywhere in the image, (size, size) bool."""
    radius = rng.uniform(*cfg.radius)
    centre = rng.uniform(radius, cfg.size - radius, size=2)
    corners = OUTLINES[form] * radius * np.exp(2j * np.pi * rng.random())
    points = np.stack([corners.real, corners.imag], axis=1)
    mask = np.zeros((cfg.size, cfg.size), np.uint8)
    # Coordinates in sixteenths of a pixel.
    fixed = np.round((points + centre) * 16).astype(np.int32)
    cv2.fillPoly(mask, [fixed], 1, shift=4)
    return mask.astype(bool)


def _paint(
    size: int,
    rng: np.random.Generator,
    texture: str,
    contrast: tuple[float, float],
) -> np.ndarray:
    """A texture in two random colours, (size, size, 3) float."""
    colour = rng.uniform(60, 195, size=3)
    swing = rng.uniform(*contrast, size=3) * rng.choice([-1, 1], size=3)
    angle, period = rng.uniform(0, np.pi), rng.uniform(6, 8)
    phases = rng.uniform(0, 2 * np.pi, size=2)
    y, x = np.mgrid[:size, :size] * (2 * np.pi / period)
    along = np.cos(angle) * x + np.sin(angle) * y + phases[0]
    across = np.cos(angle) * y - np.sin(angle) * x + phases[1]
    wave = np.zeros((size, size))
    if texture == 'striped':
        wave = np.sin(along)
    elif texture == 'checked':
        wave = np.sign(np.sin(along) * np.sin(across))
    return colour + swing * wave[..., None]


def make_shapes(folder: Path, cfg: ShapesConfig) -> None:
    """Writes a data set, unless the folder has it already.

    ``{train,val}/images/*.png``, ``{train,val}/labels/*.png`` (0 for the
    background and distractors, 1, 2, ... for `CLASSES`) and
    ``{train,val}/annotations.json`` (COCO, masks as run lengths).

    Args:
        folder (Path): where; another data set of shapes there is replaced.
        cfg (ShapesConfig): what the images are like.

    Raises:
        FileExistsError: if the folder is something else.
    """
    # Other code may draw otherwise.
    code = sha256(Path(__file__).read_bytes()).hexdigest()
    wanted = json.loads(json.dumps(asdict(cfg) | {'code': code}))
    found = read_shapes(folder)
    if found == wanted:
        return
    if folder.exists() and found is None:
        raise FileExistsError(
            f'{folder} is there and is no data set of shapes; move it away'
        )
    # Under a temporary name first, so that a stopped call leaves none half.
    part = folder.with_name(f'{folder.name}.part')
    shutil.rmtree(part, ignore_errors=True)
    for number, split in enumerate(SPLITS):
        _write_split(part / split, cfg, number, getattr(cfg, split))
    (part / ABOUT).write_text(json.dumps(wanted) + '\n')
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(part, folder)


def read_shapes(folder: Path) -> dict | None:
    """What a data set of shapes was made with.

    Args:
        folder (Path): the data set.

    Returns:
        dict | None: fields of :class:`ShapesConfig`, and 'code', the hash of
        what drew them; None if there is none.
    """
    about = folder / ABOUT
    return json.loads(about.read_text()) if about.is_file() else None


def _write_split(
    folder: Path, cfg: ShapesConfig, number: int, count: int
) -> None:
    for name in ('images', 'labels'):
        (folder / name).mkdir(parents=True)
    images, annotations = [], []
    for index in range(count):
        rng = np.random.default_rng([cfg.seed, number, index])
        image, owner, classes = draw_image(cfg, rng)
        name = f'{index:05}.png'
        # 0 for no form, then each form's label.
        labels = np.array([0, *(c + 1 for c in classes)], np.uint8)
        cv2.imwrite(str(folder / 'images' / name), image)
        cv2.imwrite(str(folder / 'labels' / name), labels[owner])
        images.append(
            dict(id=index, file_name=name, width=cfg.size, height=cfg.size)
        )
        annotations += _annotate(index, owner, classes)
    for key, annotation in enumerate(annotations, 1):
        annotation['id'] = key
    content = dict(
        images=images,
        annotations=annotations,
        categories=[
            dict(id=index, name=name) for index, name in enumerate(CLASSES, 1)
        ],
    )
    (folder / 'annotations.json').write_text(json.dumps(content))


def _annotate(
    image_id: int, owner: np.ndarray, classes: Sequence[int]
) -> list[dict]:
    """COCO's entries of the forms that have a class, of what is seen."""
    from pycocotools import mask as coco_mask

    found = []
    for form, index in enumerate(classes, 1):
        if index < 0:
            continue
        mask = np.asfortranarray(owner == form, np.uint8)
        run_lengths = coco_mask.encode(mask)
        box = [float(v) for v in coco_mask.toBbox(run_lengths)]
        run_lengths['counts'] = run_lengths['counts'].decode()
        found.append(
            dict(
                image_id=image_id,
                category_id=index + 1,
                bbox=box,
                area=int(mask.sum()),
                segmentation=run_lengths,
                iscrowd=0,
            )
        )
    return found

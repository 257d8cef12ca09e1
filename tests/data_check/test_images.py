"""Image files of all kinds: as training and testing get them, or refused."""

import numpy as np
import pytest
from mmengine.registry import DATASETS
from own_data import edit_json, load_own, shrink, write_coco, write_masks
from PIL import Image

from inline_mm import data_check
from inline_mm.data_check import check_data, largest_train_shape

SIZE = (128, 96)  # width and height of the first image


def photo():
    """A smooth picture, dark on the left and bright on the right."""
    row = np.linspace(20, 220, SIZE[0])
    pixels = np.broadcast_to(row[None, :, None], (SIZE[1], SIZE[0], 3))
    return Image.fromarray(pixels.astype(np.uint8))


def turned(orientation):
    def save(path):
        exif = Image.Exif()
        exif[0x0112] = orientation
        photo().save(path, 'JPEG', exif=exif)

    return save


def converted(mode, form='PNG'):
    return lambda path: photo().convert(mode).save(path, form)


def deep(path):
    gray = np.asarray(photo().convert('L')).astype(np.uint16) * 257
    Image.fromarray(gray).save(path, 'PNG')


READ = {
    'gray': converted('L', 'JPEG'),
    'cmyk': converted('CMYK', 'JPEG'),
    'alpha': converted('RGBA'),
    'gray with alpha': converted('LA'),
    'palette': converted('P'),
    'png named jpg': converted('RGB'),
    '16 bits': deep,
    'upside down': turned(3),
    'progressive': lambda path: photo().save(path, 'JPEG', progressive=True),
}
REFUSED = {
    'cut short': (lambda content: content[: len(content) // 2], 'cut short'),
    'header only': (lambda content: content[:150], 'is cut short'),
    'empty': (lambda content: b'', 'is empty'),
    'page': (lambda content: b'<!DOCTYPE html>', 'is a web page'),
    'noise': (lambda content: b'\x00' * 99, 'can not be decoded'),
}


def first_image(cfg, split):
    with DATASETS.switch_scope_and_registry('mmdet') as registry:
        return registry.build(cfg[f'{split}_dataloader'].dataset)[0]['inputs']


@pytest.mark.parametrize('kind', READ)
def test_kinds_that_are_read(tmp_path, kind):
    write_coco(tmp_path)
    for split in ('train', 'val'):
        READ[kind](tmp_path / split / f'{split}0.jpg')
    cfg = shrink(load_own('mask', tmp_path))
    assert check_data(cfg).faults == []
    assert first_image(cfg, 'train').shape[0] == 3
    image = first_image(cfg, 'test').float()
    assert image.shape[0] == 3
    # Neither clipped nor wrapped, and as bright as it was.
    assert 115 < image.mean() < 125
    left, right = image[..., :9].mean(), image[..., -9:].mean()
    assert (left > right) == (kind == 'upside down')


@pytest.mark.parametrize('kind', REFUSED)
def test_kinds_that_are_refused(tmp_path, kind):
    write_coco(tmp_path)
    path = tmp_path / 'train' / 'train0.jpg'
    change, words = REFUSED[kind]
    path.write_bytes(change(path.read_bytes()))
    sentence = check_data(load_own('mask', tmp_path)).sentence()
    assert words in sentence and 'train0.jpg' in sentence


def test_image_turned_by_its_tag(tmp_path):
    """Boxes of the stored picture, upright when loaded."""
    write_coco(tmp_path)
    turned(6)(tmp_path / 'train' / 'train0.jpg')
    cfg = load_own('mask', tmp_path)
    (sentence,) = check_data(cfg).faults
    assert '96x128 when loaded, 128x96 in the annotations' in sentence
    fix = "color_type='color_ignore_orientation'"
    assert fix in sentence
    load = cfg.train_dataloader.dataset.pipeline[0]
    load.color_type = 'color_ignore_orientation'
    assert check_data(cfg).faults == []


@pytest.mark.parametrize('size', [(1, 1), (10, 10), (1600, 32), (32, 1600)])
def test_awkward_shapes(tmp_path, size):
    write_coco(tmp_path)
    for split in ('train', 'val'):
        photo().resize(size).save(tmp_path / split / f'{split}0.jpg')

        def change(data):
            data['images'][0].update(width=size[0], height=size[1])
            for annotation in data['annotations'][:2]:
                annotation['bbox'] = [0, 0, size[0], size[1]]

        edit_json(tmp_path / f'{split}.json', change)
    cfg = shrink(load_own('mask', tmp_path))
    report = check_data(cfg)
    assert report.faults == []
    small = min(size) < 32
    assert report.counts[0].kept == 7 - small
    assert ('min_size=32' in str(report.counts[0])) == small
    assert min(first_image(cfg, 'test').shape[1:]) >= 1


def test_too_narrow_for_the_backbone(tmp_path):
    """mmseg doesn't pad when testing."""
    write_masks(tmp_path)
    for kind in ('images', 'masks'):
        path = next((tmp_path / kind / 'val').glob('0.*'))
        with Image.open(path) as image:
            image.resize((640, 40)).save(path)
    cfg = shrink(load_own('upernet', tmp_path))
    (sentence,) = check_data(cfg).faults
    assert 'val: ' in sentence and 'below 32 pixels' in sentence
    assert '640x40, whose short side becomes 8' in sentence
    cfg.model.data_preprocessor.test_cfg = dict(size_divisor=32)
    assert check_data(cfg).faults == []


def test_large_data_are_sampled(tmp_path, monkeypatch):
    write_masks(tmp_path)
    cfg = load_own('fpn', tmp_path)
    report = check_data(cfg, 'train', 2)
    assert report.files_read == 8 and report.files_seen == 32
    monkeypatch.setattr(data_check.images, 'SECONDS', 0.0)
    monkeypatch.setattr(data_check.masks, 'SECONDS', 0.0)
    assert check_data(cfg, 'train').files_read == 4
    assert check_data(cfg, 'train', None).files_read == 32


@pytest.mark.parametrize(
    ('kind', 'shape'), [('mask', (1344, 1344)), ('upernet', (512, 512))]
)
def test_largest_train_shape(tmp_path, kind, shape):
    assert largest_train_shape(load_own(kind, tmp_path)) == shape

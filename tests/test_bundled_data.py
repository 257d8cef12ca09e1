"""The bundled images: whole, consistent and allowed to be bundled."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

DATA = Path(__file__).parent / 'data'
COCO = DATA / 'coco'
ADE = DATA / 'ade'
CELLS = DATA / 'bccd'
SPLITS = ('train2017', 'val2017')
# CC BY, CC BY-SA, no known copyright restrictions.
ALLOWED_LICENCES = {4, 5, 7}


def load(split):
    path = COCO / f'annotations/instances_{split}.json'
    return json.loads(path.read_text())


@pytest.mark.parametrize('split', SPLITS)
def test_coco_files_and_records_match(split):
    images = load(split)['images']
    files = sorted(p.name for p in (COCO / split).iterdir())
    assert files == sorted(i['file_name'] for i in images)
    for image in images:
        assert image['file_name'] == f'{image["id"]:012}.jpg'
        with Image.open(COCO / split / image['file_name']) as file:
            file.load()
            assert file.size == (image['width'], image['height'])


@pytest.mark.parametrize('split', SPLITS)
def test_coco_annotations_are_consistent(split):
    content = load(split)
    images = {i['id']: i for i in content['images']}
    categories = {c['id'] for c in content['categories']}
    annotations = content['annotations']
    assert len(categories) == 80
    assert len({a['id'] for a in annotations}) == len(annotations)
    for annotation in annotations:
        image = images[annotation['image_id']]
        assert annotation['category_id'] in categories
        x, y, width, height = annotation['bbox']
        assert x >= 0 and y >= 0 and width > 0 and height > 0
        assert x + width <= image['width'] + 0.01
        assert y + height <= image['height'] + 0.01
        segmentation = annotation['segmentation']
        if annotation['iscrowd']:
            size = [image['height'], image['width']]
            assert segmentation['size'] == size
            assert sum(segmentation['counts']) == size[0] * size[1]
        else:
            assert all(len(p) >= 6 and not len(p) % 2 for p in segmentation)


@pytest.mark.parametrize('split', SPLITS)
def test_coco_images_are_attributed(split):
    with open(COCO / 'ATTRIBUTION.csv', newline='') as file:
        rows = {row['file']: row for row in csv.DictReader(file)}
    content = load(split)
    licences = {licence['id']: licence for licence in content['licenses']}
    for image in content['images']:
        row = rows[f'coco/{split}/{image["file_name"]}']
        licence = licences[image['license']]
        assert licence['id'] in ALLOWED_LICENCES
        assert row['license_id'] == str(licence['id'])
        assert row['license'] == licence['name']
        assert row['license_url'] == licence['url']
        assert row['flickr_url'] == image['flickr_url']


def test_attribution_lists_nothing_else():
    with open(COCO / 'ATTRIBUTION.csv', newline='') as file:
        listed = {row['file'] for row in csv.DictReader(file)}
    found = {p.relative_to(DATA).as_posix() for p in COCO.glob('*2017/*.jpg')}
    assert listed == found


def test_ade_pairs():
    images = sorted((ADE / 'images/validation').iterdir())
    masks = sorted((ADE / 'annotations/validation').iterdir())
    # The three that its authors publish under a BSD licence; no others.
    names = [f'ADE_val_0000000{i}' for i in (1, 2, 3)]
    assert [p.stem for p in images] == [p.stem for p in masks] == names
    assert (ADE / 'LICENSE').is_file()
    for image, mask in zip(images, masks, strict=True):
        with Image.open(image) as file, Image.open(mask) as labels:
            assert file.size == labels.size
            values = np.unique(np.asarray(labels))
        assert values.max() <= 150
        assert len(values) > 5


@pytest.mark.parametrize('split', ['train', 'val'])
def test_cells_are_the_same_in_both_forms(split):
    content = json.loads((CELLS / f'{split}.json').read_text())
    names = {entry['id']: entry['name'] for entry in content['categories']}
    stems = (CELLS / f'ImageSets/Main/{split}.txt').read_text().split()
    assert [Path(i['file_name']).stem for i in content['images']] == stems
    for image in content['images']:
        with Image.open(CELLS / 'JPEGImages' / image['file_name']) as file:
            assert file.size == (image['width'], image['height'])
        stem = Path(image['file_name']).stem
        tree = ElementTree.parse(CELLS / f'Annotations/{stem}.xml')
        boxes = []
        for node in tree.iter('object'):
            corners = 'xmin', 'ymin', 'xmax', 'ymax'
            left, top, right, low = (
                int(node.find(f'bndbox/{corner}').text) for corner in corners
            )
            box = [left - 1, top - 1, right - left, low - top]
            boxes.append((node.find('name').text, box))
        assert boxes == [
            (names[a['category_id']], a['bbox'])
            for a in content['annotations']
            if a['image_id'] == image['id']
        ]
    assert (CELLS / 'LICENSE').is_file()


def test_images_stay_small():
    size = sum(
        p.stat().st_size
        for folder in (COCO, ADE, CELLS)
        for p in folder.rglob('*')
        if p.is_file()
    )
    assert size < 2.5e6

"""Drawn shapes: the same for a seed, and labelled as they are drawn."""

import json
from collections import Counter

import cv2
import numpy as np
import pytest
from pycocotools.coco import COCO

from experiments import shapes
from experiments.shapes import CLASSES, ShapesConfig, make_shapes

SMALL = ShapesConfig(train=120, val=10)


@pytest.fixture(scope='module')
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp('shapes') / 'data'
    make_shapes(folder, SMALL)
    return folder


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
    }


def test_a_seed_draws_the_same_again(drawn, tmp_path):
    few = ShapesConfig(train=3, val=2)
    make_shapes(tmp_path / 'few', few)
    found = contents(tmp_path / 'few')
    pictures = {k: v for k, v in found.items() if k.endswith('.png')}
    assert len(pictures) == 2 * (3 + 2)
    # Neither depends on how many there are.
    assert pictures.items() <= contents(drawn).items()
    assert len(set(pictures.values())) == len(pictures)
    make_shapes(tmp_path / 'other', ShapesConfig(train=3, val=2, seed=1))
    other = contents(tmp_path / 'other')
    assert all(other[name] != pictures[name] for name in pictures)


@pytest.mark.parametrize('split', ['train', 'val'])
def test_annotations_are_what_is_seen(drawn, split):
    coco = COCO(str(drawn / split / 'annotations.json'))
    assert [c['name'] for c in coco.cats.values()] == list(CLASSES)
    assert len(coco.imgs) == getattr(SMALL, split)
    for index, info in coco.imgs.items():
        image = cv2.imread(str(drawn / split / 'images' / info['file_name']))
        assert image.shape == (SMALL.size, SMALL.size, 3)
        labels = cv2.imread(
            str(drawn / split / 'labels' / info['file_name']),
            cv2.IMREAD_GRAYSCALE,
        )
        again = np.zeros_like(labels)
        for annotation in coco.imgToAnns[index]:
            mask = coco.annToMask(annotation).astype(bool)
            rows, columns = np.nonzero(mask)
            left, top = columns.min(), rows.min()
            size = columns.max() + 1 - left, rows.max() + 1 - top
            assert annotation['bbox'] == [left, top, *size]
            assert annotation['area'] == mask.sum() > 0
            assert not again[mask].any(), 'two forms in one pixel'
            again[mask] = annotation['category_id']
        assert (again == labels).all()


def test_classes_are_balanced(drawn):
    content = json.loads((drawn / 'train/annotations.json').read_text())
    counts = Counter(a['category_id'] for a in content['annotations'])
    assert sorted(counts) == list(range(1, len(CLASSES) + 1))
    mean = sum(counts.values()) / len(CLASSES)
    assert max(abs(n - mean) for n in counts.values()) < 0.4 * mean


def test_most_of_each_form_is_seen(monkeypatch):
    """What later forms cover is bounded, also with many of them."""
    areas = []
    draw = shapes._draw_form

    def note(*args):
        areas.append(draw(*args))
        return areas[-1]

    monkeypatch.setattr(shapes, '_draw_form', note)
    crowded = ShapesConfig(objects=(6, 8))
    hidden = 0
    for seed in range(10):
        areas.clear()
        _, owner, classes = shapes.draw_image(
            crowded, np.random.default_rng(seed)
        )
        for number in range(1, len(classes) + 1):
            seen = owner == number
            # The form it was drawn as: the smallest drawn one around it.
            whole = min(
                m.sum() for m in areas if (m & seen).sum() == seen.sum()
            )
            assert seen.sum() >= (1 - shapes.MOST_HIDDEN) * whole
            hidden += seen.sum() < whole
    assert hidden


def test_is_drawn_once(drawn, tmp_path, monkeypatch):
    before = {p: p.stat().st_mtime_ns for p in drawn.rglob('*')}
    make_shapes(drawn, SMALL)
    assert before == {p: p.stat().st_mtime_ns for p in drawn.rglob('*')}
    make_shapes(tmp_path / 'data', ShapesConfig(train=2, val=1))
    make_shapes(tmp_path / 'data', ShapesConfig(train=1, val=1))
    assert len(list((tmp_path / 'data').glob('*/images/*.png'))) == 2
    assert [path.name for path in tmp_path.iterdir()] == ['data']


def test_spares_other_folders(tmp_path):
    (tmp_path / 'mine.txt').touch()
    with pytest.raises(FileExistsError, match='no data set of shapes'):
        make_shapes(tmp_path, SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ['mine.txt']


def test_a_stopped_call_leaves_nothing_half(tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    few = ShapesConfig(train=2, val=1)
    with monkeypatch.context() as patch:
        patch.setattr(shapes, '_annotate', stop)
        with pytest.raises(KeyboardInterrupt):
            make_shapes(tmp_path / 'data', few)
    assert not (tmp_path / 'data').exists()
    make_shapes(tmp_path / 'data', few)
    assert shapes.read_shapes(tmp_path / 'data')['train'] == 2

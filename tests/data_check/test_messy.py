"""The collection of messy files, where INLINE_MM_MESSY names its folder.

Its kinds are made anew in test_images.py and test_fuzz.py; the files
themselves are not the project's to carry.
"""

import json
import os
from pathlib import Path

import mmcv
import pytest
from mmengine.config import Config
from own_data import OWN, read_through
from tiny import SEG

from inline_mm.data_check import check_data
from inline_mm.engine.launch import shipped_configs

FOLDER = Path(os.environ.get('INLINE_MM_MESSY', ''))
# What the sentence about a file says; all others are read without a fault.
FAULTS = {
    'images/tiny_10x10.jpg': 'nothing is left to learn from',
    'images/one_pixel.png': 'nothing is left to learn from',
    'images/wide_1600x24.jpg': 'nothing is left to learn from',
    'images/tall_20x1400.jpg': 'nothing is left to learn from',
    'images/truncated_60pct.jpg': 'is cut short',
    'images/header_only.jpg': 'is cut short',
    'images/zero_byte.jpg': 'is empty',
    'images/not_an_image.jpg': 'is a web page',
    'coco/annotations/no_annotations_at_all.json': 'that can be learned',
    'coco/annotations/no_annotations_key.json': "no list 'annotations'",
    'coco/annotations/missing_image_file.json': '000000999999.jpg',
    'coco/annotations/wrong_image_size.json': 'width and height exchanged',
    'coco/annotations/degenerate_polygons.json': "empty 'segmentation'",
    'coco/annotations/missing_fields.json': "have no 'segmentation'",
    'coco/annotations/crowd_only.json': 'that can be learned from',
    'coco/annotations/duplicate_ids.json': 'have the id of another one',
    'coco/annotations/nonfinite_box.json': 'not finite numbers',
    'coco/annotations/truncated_json.json': 'is no valid JSON',
    'coco/annotations/utf8_bom.json': 'byte order mark',
    'coco/annotations/list_not_dict.json': 'holds a list, expected',
    'ade/annotations/label_out_of_range.png': 'label 151 in',
    'ade/annotations/label_rgb_equal_channels.png': 'equal channels',
    'ade/annotations/label_colour_coded.png': 'channels in colours',
    'ade/annotations/label_as_jpeg.jpg': 'set seg_map_suffix',
    'ade/annotations/label_size_mismatch.png': 'differ in size',
    'ade/annotations/label_all_ignored.png': 'has a pixel of a class',
    'ade/images/label_missing.jpg': 'label_missing.png does not exist',
}


def cases(kind):
    manifest = FOLDER / 'manifest.json'
    listed = json.loads(manifest.read_text()) if manifest.is_file() else []
    names = [e['file'] for e in listed if e['file'].startswith(f'{kind}/')]
    missing = [] if names else ['INLINE_MM_MESSY is not set']
    return [
        *names,
        *(pytest.param(m, marks=pytest.mark.skip(m)) for m in missing),
    ]


def outcome(cfg, name):
    """Checks the config; what passes is read as training and test read it."""
    report = check_data(cfg)
    if name in FAULTS:
        assert any(FAULTS[name] in fault for fault in report.faults)
        assert FAULTS[name] in report.sentence()
    else:
        assert report.faults == []
        assert read_through(cfg, 'train') and read_through(cfg, 'test')


def coco_config(annotations, images, classes):
    cfg = Config.fromfile(shipped_configs()[OWN['mask']])
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.update(data_root='', ann_file=str(annotations))
        dataset.data_prefix = dict(img=str(images))
        dataset.metainfo = dict(classes=classes)
    for evaluator in (cfg.val_evaluator, cfg.test_evaluator):
        evaluator.ann_file = str(annotations)
    for head in ('bbox_head', 'mask_head'):
        cfg.model.roi_head[head].num_classes = len(classes)
    return cfg


@pytest.mark.parametrize('name', cases('coco'))
def test_annotation_files(name):
    reference = 'ok_reference', 'custom_dataset'
    path = FOLDER / 'coco' / 'annotations' / f'{reference["custom" in name]}'
    names = json.loads(path.with_suffix('.json').read_text())['categories']
    classes = tuple(category['name'] for category in names)
    outcome(
        coco_config(FOLDER / name, FOLDER / 'coco' / 'images', classes), name
    )


@pytest.mark.parametrize('name', cases('images'))
def test_images(name, tmp_path):
    path = FOLDER / name
    image = mmcv.imread(str(path)) if path.stat().st_size else None
    height, width = (64, 64) if image is None else image.shape[:2]
    w, h = max(1, width // 2), max(1, height // 2)
    annotation = dict(
        id=1,
        image_id=1,
        category_id=1,
        bbox=[0, 0, w, h],
        area=w * h,
        iscrowd=0,
        segmentation=[[0, 0, w, 0, w, h, 0, h]],
    )
    entry = dict(id=1, file_name=path.name, height=height, width=width)
    data = dict(
        images=[entry],
        annotations=[annotation],
        categories=[dict(id=1, name='thing')],
    )
    (tmp_path / 'one.json').write_text(json.dumps(data))
    outcome(coco_config(tmp_path / 'one.json', path.parent, ('thing',)), name)


@pytest.mark.parametrize('name', cases('ade'))
def test_masks(name, tmp_path):
    stem = Path(name).stem
    for kind in ('images', 'annotations'):
        (tmp_path / kind).mkdir()
        for file in (FOLDER / 'ade' / kind).glob(f'{stem}.*'):
            (tmp_path / kind / file.name).symlink_to(file)
    cfg = Config.fromfile(shipped_configs()[SEG])
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.data_root = str(tmp_path)
        dataset.data_prefix = dict(
            img_path='images', seg_map_path='annotations'
        )
    outcome(cfg, name)

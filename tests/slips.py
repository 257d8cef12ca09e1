"""Slips that users make in their data and configs, planted one by one.

Each is a function of the config and the data's folder, with the words that a
sentence about it has; None for what is odd and must not stop a run.
"""

import codecs

import numpy as np
from own_data import edit_json
from PIL import Image


def _annotation(index, values):
    def plant(cfg, root):
        def change(data):
            data['annotations'][index].update(values)

        edit_json(root / 'train.json', change)

    return plant


def _without(index, key):
    def plant(cfg, root):
        edit_json(
            root / 'train.json',
            lambda data: data['annotations'][index].pop(key, None),
        )

    return plant


def _image(index, values):
    def plant(cfg, root):
        edit_json(
            root / 'train.json',
            lambda data: data['images'][index].update(values),
        )

    return plant


def _metainfo(classes):
    def plant(cfg, root):
        cfg.train_dataloader.dataset.metainfo = dict(classes=classes)

    return plant


def _data(values):
    def plant(cfg, root):
        cfg.train_dataloader.dataset.update(values)

    return plant


def _heads(cfg, root):
    cfg.model.get('roi_head', cfg.model).mask_head = dict(num_classes=80)


def _decode_head(cfg, root):
    cfg.model.decode_head.num_classes = 150


def _evaluator(cfg, root):
    cfg.val_evaluator.ann_file = str(root / 'none.json')


def _content(name, change):
    def plant(cfg, root):
        path = root / name
        path.write_bytes(change(path.read_bytes()))

    return plant


def _repaint(name, change, **options):
    """Rewrites an image by a function of its pixels."""

    def plant(cfg, root):
        path = root / name
        with Image.open(path) as image:
            pixels = np.array(image)
        changed = change(pixels)
        if not isinstance(changed, Image.Image):
            changed = Image.fromarray(changed)
        path.unlink()
        changed.save(path, **options)

    return plant


def _duplicate_category(cfg, root):
    def change(data):
        data['categories'].append(dict(id=9, name='red'))

    edit_json(root / 'train.json', change)


def _palette(pixels):
    image = Image.fromarray(np.uint8(pixels)).convert('P')
    image.putdata(np.uint8(pixels).reshape(-1).tolist())
    image.putpalette(list(range(256)) * 3)
    return image


def _all_masks(cfg, root):
    for path in (root / 'masks' / 'train').glob('*'):
        with Image.open(path) as image:
            pixels = np.array(image)
        path.unlink()
        Image.fromarray(np.uint8((pixels > 2) * 255)).save(path)


def _remove(name):
    def plant(cfg, root):
        (root / name).unlink(missing_ok=True)

    return plant


def _set_pixel(value):
    def change(pixels):
        pixels = pixels.copy()
        pixels[:3, :3] = value
        return pixels

    return change


def _flag(cfg, root):
    cfg.train_dataloader.dataset.pipeline[1].reduce_zero_label = False


COCO = {
    'case': (_metainfo(('Red', 'green')), "no category 'Red'"),
    'order': (_metainfo(('green', 'red')), 'another order'),
    'string': (_metainfo('red'), "classes=('red',)"),
    'old key': (_data(dict(classes=('red',))), "the argument 'classes'"),
    'heads': (_heads, 'mask_head.num_classes=80'),
    'path': (
        _data(dict(ann_file='a/train.json')),
        'a/train.json does not exist',
    ),
    'folder': (
        _data(dict(data_prefix=dict(img='tran'))),
        'tran/train0.jpg does not exist',
    ),
    'evaluator': (_evaluator, 'none.json does not exist'),
    'missing image': (
        _image(0, dict(file_name='no.jpg')),
        'no.jpg does not exist',
    ),
    'size': (_image(1, dict(width=70, height=60)), 'another size'),
    'turned': (_image(3, dict(height=160, width=64)), 'exchanged'),
    'no width': (_image(2, dict(width=0)), 'no positive height'),
    'empty image': (_content('train/train4.jpg', lambda _: b''), 'is empty'),
    'page': (_content('train/train4.jpg', lambda _: b'<html>'), 'web page'),
    'cut image': (
        _content('train/train5.jpg', lambda content: content[:200]),
        'is cut short',
    ),
    'same id': (_annotation(1, dict(id=1)), 'have the id of another one'),
    'nan': (
        _annotation(2, dict(bbox=[1, 2, float('nan'), 4])),
        'not finite numbers',
    ),
    'corners': (_annotation(3, dict(bbox=[1, 2, 3])), 'are not [x, y,'),
    'no area': (_without(4, 'area'), "no 'area'"),
    'no mask': (_without(5, 'segmentation'), "no 'segmentation'"),
    'empty mask': (
        _annotation(6, dict(segmentation=[])),
        "an empty 'segmentation'",
    ),
    'rle size': (
        _annotation(7, dict(segmentation=dict(size=[9, 9], counts=[81]))),
        'run-length masks',
    ),
    'same name': (_duplicate_category, "the name 'red'"),
    'negative': (_annotation(8, dict(bbox=[9, 9, -3, 5])), None),
    'outside': (_annotation(9, dict(bbox=[900, 9, 5, 5])), None),
    'beyond': (_annotation(8, dict(bbox=[50, 50, 300, 300])), None),
    'unknown': (_annotation(9, dict(category_id=91)), None),
    'orphan': (_annotation(10, dict(image_id=4242)), None),
    'crowd': (_annotation(10, dict(iscrowd=1)), None),
    'two points': (_annotation(11, dict(segmentation=[[1, 1, 5, 5]])), None),
    'flat': (
        _annotation(11, dict(segmentation=[[1, 1, 5, 5, 9, 9]])),
        None,
    ),
    'gray': (
        _repaint('train/train6.jpg', lambda p: p[..., 0], format='PNG'),
        None,
    ),
    'cmyk': (
        _repaint(
            'train/train7.jpg', lambda p: Image.fromarray(p).convert('CMYK')
        ),
        None,
    ),
    # Last, as nothing else can be planted in such a file.
    'cut json': (_content('train.json', lambda c: c[:900]), 'no valid JSON'),
    'bom': (
        _content('train.json', lambda content: codecs.BOM_UTF8 + content),
        'byte order mark',
    ),
}

_M = 'masks/train/{}.png'.format
MASKS = {
    'string': (_metainfo('ab'), "classes=('ab',)"),
    'twice': (_metainfo(('a', 'a', 'b', 'c')), 'no name may come twice'),
    'heads': (_decode_head, 'decode_head.num_classes=150'),
    'flag': (_flag, 'reduce_zero_label is True in the data set'),
    'folder': (
        _data(dict(data_prefix=dict(img_path='imgs', seg_map_path='masks'))),
        'imgs does not exist',
    ),
    'suffix': (_data(dict(img_suffix='.tif')), "ends with '.tif'"),
    '0 and 255': (_all_masks, 'only 0 and 255'),
    'range': (_repaint(_M(0), _set_pixel(9)), 'label 9 in'),
    'colours': (
        _repaint(_M(1), lambda p: np.stack([p, p * 2, p], -1)),
        '3 channels in colours',
    ),
    'three': (
        _repaint(_M(2), lambda p: np.stack([p, p, p], -1)),
        'three equal channels',
    ),
    'size': (_repaint(_M(3), lambda p: p[:-5]), 'differ in size'),
    'jpeg': (
        _repaint(_M(4), lambda p: p, format='JPEG'),
        'JPEG files, which smear labels',
    ),
    'missing': (_remove(_M(5)), '5.png does not exist'),
    'broken': (_content(_M(6), lambda _: b'no'), 'masks can not be decoded'),
    'ignored': (_repaint(_M(7), _set_pixel(255)), None),
    'all ignored': (_repaint(_M(7), lambda p: p * 0), None),
    'palette': (_repaint(_M(0), _palette), None),
    '16 bits': (_repaint(_M(0), lambda p: p.astype(np.uint16)), None),
    'gray': (
        _repaint('images/train/2.jpg', lambda p: p[..., 0]),
        None,
    ),
}

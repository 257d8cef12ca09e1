"""Records of tests as tools/test.py writes them, made up."""

from copy import deepcopy

RECORD = {
    'task': 'detection',
    'scores': {
        'box_ap': 40.0,
        'box_ap50': 60.0,
        'box_ap75': 44.0,
        'box_ap_s': 20.0,
        'box_ap_m': 42.0,
        'box_ap_l': 55.0,
        'mask_ap': 36.0,
        'mask_ap50': 57.0,
        'mask_ap75': 38.0,
        'mask_ap_s': 15.0,
        'mask_ap_m': 38.0,
        'mask_ap_l': 52.0,
    },
    'per_class': {
        'box_ap': {'cat': 50.0, 'dog': 30.0, 'unicorn': None},
        'mask_ap': {'cat': 46.0, 'dog': 26.0, 'unicorn': None},
    },
    'metrics': {'coco/bbox_mAP': 0.4},
    'config': {'name': 'mask-rcnn_one', 'sha256': 'c1'},
    'checkpoint': {'path': '/nowhere/epoch_12.pth', 'sha256': 'w0'},
    'initialisation': {
        'text': 'one.pth (sha256 11111111, matched 9 of 9)',
        'source': '/weights/one.pth',
        'sha256': '1' * 64,
        'matched': 9,
        'total': 9,
    },
    'initialisation_text': 'one.pth (sha256 11111111, matched 9 of 9)',
    'training': {
        'source': 'checkpoint',
        'config_sha256': 't1',
        'epochs': 12,
        'iterations': None,
        'done_epochs': 12,
        'done_iterations': 87960,
        'batch': {
            'per_process': 2,
            'processes': 8,
            'accumulated': 1,
            'images': 16,
        },
        'seed': 0,
        'data': [
            {
                'name': 'CocoDataset',
                'images': 117266,
                'classes': 80,
                'sha256': 'a' * 64,
            }
        ],
    },
    'batch_size': 1,
    'test_scale': ['1333x800 with its ratio kept'],
    'tta': False,
    'test_data': [
        {
            'name': 'CocoDataset',
            'images': 5000,
            'classes': 80,
            'sha256': 'b' * 64,
        }
    ],
    'model': {
        'method': 'Mask R-CNN',
        'backbone': 'Swin-T',
        'params': 47_800_000,
        'flops': 267_000_000_000,
        'input_shape': [800, 1280],
        'uncounted': [],
        'assumptions': [],
    },
    'latency': {
        'ms': 30.0,
        'images': 4995,
        'input_shape': [800, 1216],
        'device': 'a GPU',
    },
    'date': '2026-01-01T00:00:00+00:00',
    'versions': {'python': '3.11.7'},
}


def make_record(changes=None):
    """A detector's record with new values by dotted keys."""
    return _change(deepcopy(RECORD), changes)


def make_segmentation(changes=None):
    """A segmentor's record with new values by dotted keys."""
    record = make_record()
    record.update(
        task='segmentation',
        scores={'miou': 44.5, 'macc': 55.6, 'aacc': 81.0},
        per_class={'iou': {'wall': 70.0, 'sky': 90.0}},
        config={'name': 'upernet_two', 'sha256': 'c2'},
        test_scale=['2048x512 with its ratio kept'],
    )
    record['training'].update(
        config_sha256='t2',
        epochs=None,
        iterations=160000,
        done_epochs=0,
        done_iterations=160000,
    )
    record['test_data'][0].update(
        name='ADE20KDataset', images=2000, classes=150
    )
    record['model'].update(method='UPerNet', input_shape=[512, 2048])
    return _change(record, changes)


def _change(record, changes):
    for key, value in (changes or {}).items():
        *path, last = key.split('.')
        node = record
        for part in path:
            node = node[part]
        node[last] = value
    return record

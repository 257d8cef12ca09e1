"""tools/analyze_attention.py: from images to a folder, or a sentence."""

import json
import time

import cv2
import numpy as np
import pytest
import torch
from forked import run_script
from small_archs import ARCHS
from tiny import DATA, OPTIONS, SEG, TOOLS, build_model

from inline_mm.attention_maps.inputs import Picture, find_pictures, read_points
from inline_mm.attention_maps.maps import Point
from inline_mm.attention_maps.run import analyze
from inline_mm.checkpoint import CheckpointError
from inline_mm.engine import LaunchError, launch

CLS = 'inline-deit-tiny_8xb128_in1k'
SWIN = 'inline-swin-tiny_8xb128_in1k'
BASELINE = 'cswin-tiny_8xb128_in1k'
SMALL_CLS = ['model.backbone.arch._delete_=True'] + [
    f'model.backbone.arch.{key}={value}'
    for key, value in ARCHS['InLineDeiT'].items()
]


def small_config(name, options):
    return launch.read_config(name, list(options))


# Inputs.


def test_points_are_shares_or_pixels():
    picture = Picture('a.jpg', (100, 200), (224, 448))
    words = ['0.25,0.5', '50,50', '0,0', '1,1']
    points = read_points(words, picture)
    assert points == [(0.25, 0.5), (0.25, 0.5), (0, 0), (1, 1)]
    assert Point(0.25, 0.5).token((7, 14)) == (3, 3)
    assert Point(1, 1).token((7, 14)) == (6, 13)


@pytest.mark.parametrize(
    ('word', 'sentence'),
    [
        ('150,120', '150,120 is outside of a.jpg, which has 200x100'),
        ('-0.5,0.5', 'is outside'),
        ('nan,0.5', 'is outside'),
        ('0.5', 'takes X,Y'),
        ('a,b', 'takes X,Y'),
    ],
)
def test_points_that_are_none(word, sentence):
    with pytest.raises(LaunchError, match=sentence):
        read_points([word], Picture('a.jpg', (100, 200), (224, 448)))


def write_picture(path, height, width):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
    cv2.imwrite(str(path), pixels)
    return path


@pytest.mark.parametrize(
    ('size', 'expected'),
    [
        ((300, 300), (224, 224)),
        ((480, 640), (224, 288)),
        ((640, 480), (288, 224)),
        ((6, 300), (32, 384)),
    ],
)
def test_sizes_of_images(tmp_path, size, expected):
    path = write_picture(tmp_path / 'a.png', *size)
    (picture,) = find_pictures([str(path)], 224)
    assert picture.input_hw == expected
    assert picture.read().shape == (*expected, 3)


# The tool.


def check_folder(out, names):
    record = json.loads((out / 'attention.json').read_text())
    assert {path.name for path in out.iterdir()} == {
        *record['figures'],
        'attention.json',
    }
    for name in record['figures']:
        assert min(cv2.imread(str(out / name)).shape[:2]) > 300
    assert [block['name'] for block in record['blocks']] == names
    for block in record['blocks']:
        heads = block['heads']
        for method in ('subtract', 'divide', 'softmax'):
            found = block['injectivity'][method]
            assert all(len(values) == heads for values in found.values())
            assert np.shape(block['locality'][method]) == (heads, 3)
        assert block['injectivity']['divide']['doubling'] == pytest.approx(
            [0] * heads, abs=1e-6
        )
        assert min(block['injectivity']['subtract']['doubling']) > 0
        # Subtraction adds a constant to products of rank head_dim.
        ranks = block['effective_rank']['attention']
        assert max(ranks['subtract']) <= block['head_dim'] + 1
        local = np.array(block['locality']['with_local'])
        assert (np.diff(local) >= 0).all()
        assert (local <= 1).all()
    return record


def test_the_tool_on_a_segmentor_without_weights(tmp_path):
    folder = tmp_path / 'images'
    folder.mkdir()
    write_picture(folder / 'b.png', 60, 90)
    done = run_script(
        tmp_path,
        TOOLS / 'analyze_attention.py',
        SEG,
        'random',
        write_picture(tmp_path / 'a.png', 50, 50),
        'images',
        '--image-size',
        64,
        '--points',
        '0.5,0.5',
        '10,40',
        '--queries',
        40,
        '--cfg-options',
        *OPTIONS[SEG],
    )
    assert done.returncode == 0, done.output
    assert 'RANDOM weights' in done.output
    assert 'weights: random' in done.output
    record = check_folder(
        tmp_path / 'work_dirs' / 'attention',
        [
            'stages.0.blocks.0',
            'stages.1.blocks.0',
            'stages.2.blocks.0',
        ],
    )
    assert record['weights'] == 'random'
    assert [image['input'] for image in record['images']] == [
        [64, 64],
        [64, 96],
    ]
    assert record['not_analyzed'].keys() == {
        'stages.2.blocks.1',
        'stages.3.blocks.0',
    }
    assert record['blocks'][0]['effective_rank']['attention_limit'] == 40
    assert 'maps_02_b_block3.1.png' in record['figures']


def test_a_classifier_with_weights(tmp_path):
    cfg = small_config(CLS, SMALL_CLS)
    path = tmp_path / 'model.pth'
    torch.save(dict(state_dict=build_model(cfg).state_dict()), path)
    image = next((DATA / 'coco' / 'val2017').iterdir())
    done = analyze(cfg, str(path), [str(image)], str(tmp_path / 'out'))
    assert 'matched' in done.weights
    record = check_folder(
        tmp_path / 'out', [f'blocks.{index}' for index in range(4)]
    )
    assert record['weights'] == done.weights
    assert [name for name in record['figures'] if 'maps' in name] == [
        f'maps_01_{image.stem}_block{number}.png' for number in (1, 3, 4)
    ]


@pytest.mark.parametrize(
    ('change', 'sentence'),
    [
        (dict(images=['none.jpg']), 'none.jpg does not exist'),
        (dict(images=['broken.jpg']), 'broken.jpg is empty'),
        (dict(images=['film.mp4']), 'film.mp4 is a video'),
        (dict(image_size=16), '--image-size is 16, expected 32'),
        (dict(queries=1), '--queries is 1, expected 2'),
        (dict(points=['90,10']), '--points 90,10 is outside'),
        (dict(device='cuda:99'), '--device cuda:99 can not be used'),
        (dict(device='abacus'), '--device abacus can not be used'),
        (dict(checkpoint='none.pth'), 'none.pth'),
        (dict(cfg=BASELINE), 'InLineCSwin of .* no InLine attention'),
        (dict(out='file'), '--out file: the folder can not be made'),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    tmp_path, monkeypatch, change, sentence
):
    monkeypatch.chdir(tmp_path)
    write_picture(tmp_path / 'a.png', 50, 50)
    for name in ('broken.jpg', 'film.mp4', 'file'):
        (tmp_path / name).touch()
    before = sorted(tmp_path.iterdir())
    arguments = dict(cfg=CLS, checkpoint='random', images=['a.png'], out='out')
    arguments |= change
    name = arguments.pop('cfg')
    cfg = small_config(name, SMALL_CLS if name == CLS else [])
    with pytest.raises((LaunchError, CheckpointError), match=sentence):
        analyze(cfg, **arguments)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.heavy
def test_swin_on_all_bundled_images_within_two_minutes(tmp_path):
    images = [
        *DATA.glob('coco/*2017/*.jpg'),
        *DATA.glob('ade/images/*/*.jpg'),
    ]
    start = time.process_time()
    analyze(
        launch.read_config(SWIN),
        'random',
        [str(path) for path in images],
        str(tmp_path),
    )
    # Of one core; the clock would measure what else runs on the machine.
    assert time.process_time() - start < 120
    names = [
        f'stages.{stage}.blocks.{block}'
        for stage, depth in enumerate((2, 2, 6))
        for block in range(depth)
    ]
    record = check_folder(tmp_path, names)
    assert len(record['images']) == 15

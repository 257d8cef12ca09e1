"""tools/image_demo.py: any picture, drawn and written, or named."""

import json
import os
import resource
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from forked import run_script
from PIL import Image
from tiny import DATA, DET, OPTIONS, SEG, TOOLS, build_model

from inline_mm.engine import LaunchError, launch
from inline_mm.predict import run as image_demo

CLS = 'inline-deit-tiny_8xb128_in1k'
SMALL = {
    **OPTIONS,
    CLS: ['model.backbone.init_cfg=None', 'model.head.num_classes=7'],
}
CLASSES = {DET: 80, SEG: 150, CLS: 7}


def read_config(name):
    return launch.read_config(name, list(SMALL[name]))


@pytest.fixture(scope='module', params=[DET, SEG, CLS])
def trained(request, tmp_path_factory):
    """A config and a checkpoint of its small model, untrained."""
    name = request.param
    path = tmp_path_factory.mktemp('demo') / 'model.pth'
    torch.manual_seed(0)
    model = build_model(read_config(name))
    classes = [f'class {index}' for index in range(CLASSES[name])]
    meta = dict(dataset_meta=dict(classes=classes))
    torch.save(dict(state_dict=model.state_dict(), meta=meta), path)
    return name, path


def write_pictures(folder):
    """Right and wrong ones; what is wrong with each of the latter."""
    rng = np.random.default_rng(0)

    def draw(*shape):
        return rng.integers(0, 255, shape, dtype=np.uint8)

    rgb = Image.fromarray(draw(60, 90, 3))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    rgb.save(folder / 'turned.jpg', exif=exif)
    rgb.save(folder / 'same.jpg')
    rgb.save(folder / 'same.png')
    rgb.convert('CMYK').save(folder / 'cmyk.jpg')
    rgb.convert('L').save(folder / 'gray.jpg')
    rgb.convert('RGBA').save(folder / 'alpha.png')
    Image.fromarray(draw(50, 70).astype(np.uint16) * 257).save(
        folder / 'deep.png'
    )
    Image.fromarray(draw(1, 1, 3)).save(folder / 'pixel.png')
    Image.fromarray(draw(6, 300, 3)).save(folder / 'wide.png')
    content = (folder / 'same.jpg').read_bytes()
    (folder / 'cut.jpg').write_bytes(content[: len(content) // 2])
    (folder / 'empty.jpg').touch()
    (folder / 'page.jpg').write_text('<html>not found</html>')
    (folder / 'notes.txt').write_text('no picture')
    return {
        'cut.jpg': 'the file is cut short',
        'empty.jpg': 'the file is empty',
        'page.jpg': 'the file is a web page or XML',
    }


def test_each_picture_has_results_or_a_sentence(trained, tmp_path):
    name, checkpoint = trained
    wrong = write_pictures(tmp_path)
    out = tmp_path / 'out'
    failures = image_demo.run(
        str(tmp_path), read_config(name), str(checkpoint), str(out), 0.0
    )
    sentences = dict(failure.split(': ', 1) for failure in failures)
    if name == SEG:
        # The recipe keeps ratios, and the backbone takes 32 pixels at least.
        assert 'at least 32 pixels' in sentences.pop('wide.png')
        wrong['wide.png'] = 'too thin'
    else:
        assert 'wide.png' not in sentences
    assert sentences.keys() == wrong.keys() - {'wide.png'}
    assert all(wrong[key] == text for key, text in sentences.items())
    right = {
        path.name
        for path in tmp_path.iterdir()
        if path.suffix in ('.jpg', '.png')
    } - wrong.keys()
    assert {p.name[:-5] for p in out.glob('*.json')} == right
    for picture in right:
        record = json.loads((out / f'{picture}.json').read_text())
        drawn = cv2.imread(str(out / f'{picture}.png'))
        assert drawn is not None
        size = (record['height'], record['width'])
        if picture == 'turned.jpg':
            assert size == (90, 60), 'EXIF is honoured, as in training'
        if name == SEG:
            mask = cv2.imread(str(out / f'{picture}.mask.png'), -1)
            assert mask.shape == size
            shares = sum(entry['share'] for entry in record['classes'])
            assert shares == pytest.approx(1)
        elif name == DET:
            for found in record['detections']:
                assert found['mask']['size'] == list(size)
                assert found['name'] == f'class {found["label"]}'
        else:
            scores = [entry['score'] for entry in record['classes']]
            assert len(scores) == 5
            assert scores == sorted(scores, reverse=True)


@pytest.mark.skipif(
    'INLINE_MM_MESSY' not in os.environ, reason='INLINE_MM_MESSY is not set'
)
@pytest.mark.parametrize(
    'trained',
    [CLS, *(pytest.param(n, marks=pytest.mark.heavy) for n in (DET, SEG))],
    indirect=True,
)
@pytest.mark.parametrize('kind', ['images', 'coco/images', 'ade/images'])
def test_the_messy_collection(trained, kind, tmp_path):
    """Each file has its results or its sentence; none ends the run."""
    name, checkpoint = trained
    folder = Path(os.environ['INLINE_MM_MESSY'], kind)
    out = tmp_path / 'out'
    failures = image_demo.run(
        str(folder), read_config(name), str(checkpoint), str(out), 0.0
    )
    sentences = dict(failure.split(': ', 1) for failure in failures)
    broken = {
        'truncated_60pct.jpg': 'the file is cut short',
        'header_only.jpg': 'the file is cut short',
        'zero_byte.jpg': 'the file is empty',
        'not_an_image.jpg': 'the file is a web page or XML',
    }
    for file, sentence in broken.items() if kind == 'images' else ():
        assert sentences.pop(file) == sentence
    # The segmentor's recipe keeps ratios: of these less than 32 pixels stay.
    thin = {'wide_1600x24.jpg', 'tall_20x1400.jpg', 'thin_900x32.jpg'}
    files = {path.name for path in folder.iterdir()}
    assert sentences.keys() == (files & thin if name == SEG else set())
    assert all('at least 32 pixels' in text for text in sentences.values())
    done = {path.name[:-5] for path in out.glob('*.json')}
    assert done == files - broken.keys() - sentences.keys()


@pytest.mark.parametrize('trained', [CLS], indirect=True)
def test_a_video_frame_by_frame(trained, tmp_path):
    """It is read the same way for every model."""
    name, checkpoint = trained
    path = tmp_path / 'clip.avi'
    writer = cv2.VideoWriter(
        str(path), cv2.VideoWriter_fourcc(*'MJPG'), 5, (64, 48)
    )
    for value in (0, 120, 240):
        writer.write(np.full((48, 64, 3), value, np.uint8))
    writer.release()
    out = tmp_path / 'out'
    failures = image_demo.run(
        str(path), read_config(name), str(checkpoint), str(out)
    )
    assert not failures
    names = sorted(p.name for p in out.iterdir())
    assert names == [
        f'clip.avi.{i}.{kind}' for i in range(3) for kind in ('json', 'png')
    ]


def grown_by(name, checkpoint, folder, number):
    """Peak memory that more pictures of one size add, in MB."""
    for index in range(number):
        pixels = np.full((96, 128, 3), index % 255, np.uint8)
        cv2.imwrite(str(folder / f'{index:03d}.png'), pixels)
    cfg = read_config(name)
    peaks = []
    for _ in range(2):
        image_demo.run(
            str(folder), cfg.copy(), str(checkpoint), str(folder / 'out'), 0.0
        )
        usage = resource.getrusage(resource.RUSAGE_SELF)
        peaks.append(usage.ru_maxrss / 1024)
    return peaks[1] - peaks[0]


@pytest.mark.parametrize(
    'number', [6, pytest.param(200, marks=pytest.mark.heavy)]
)
def test_memory_is_flat(trained, tmp_path, number):
    name, checkpoint = trained
    assert grown_by(name, checkpoint, tmp_path, number) < 40


@pytest.mark.parametrize(
    ('content', 'sentence'),
    [
        (dict(state_dict={}), 'fills 0 of'),
        (None, "does not say the names of its classes (meta['dataset_meta']"),
    ],
)
def test_weights_without_values_or_names(trained, content, sentence, tmp_path):
    name, checkpoint = trained
    if content is None:
        content = torch.load(checkpoint)
        content['meta'] = {}
    torch.save(content, tmp_path / 'model.pth')
    with pytest.raises(LaunchError) as caught:
        image_demo.load_model(read_config(name), str(tmp_path / 'model.pth'))
    assert sentence in str(caught.value)


def test_nothing_to_look_at(tmp_path):
    with pytest.raises(LaunchError, match='has no images, expected'):
        image_demo.find_frames(tmp_path)
    with pytest.raises(LaunchError, match='does not exist'):
        image_demo.find_frames(tmp_path / 'a.jpg')


@pytest.mark.parametrize('trained', [SEG], indirect=True)
def test_the_tool_ends_with_the_failed_pictures(trained, tmp_path):
    """It is the same for every model."""
    name, checkpoint = trained
    (tmp_path / 'empty.jpg').touch()
    image = next((DATA / 'ade').rglob('*.jpg'))
    (tmp_path / 'right.jpg').write_bytes(image.read_bytes())
    done = run_script(
        tmp_path,
        TOOLS / 'image_demo.py',
        tmp_path,
        name,
        checkpoint,
        '--cfg-options',
        *SMALL[name],
    )
    assert done.returncode == 1
    assert 'image_demo.py: 1 picture(s) failed, the others are done; ' in (
        done.output
    )
    assert 'Traceback' not in done.output
    out = tmp_path / 'work_dirs' / 'image_demo'
    assert (out / 'right.jpg.mask.png').is_file()

"""The demonstration in short form, from the command line to the page."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from PIL import Image

from experiments.demo.everything import MARKER, prepare_out

ROOT = Path(__file__).parents[2]
ITERS = 2
LOGGED = {
    'box AP': 'coco/bbox_mAP',
    'box AP50': 'coco/bbox_mAP_50',
    'mask AP': 'coco/segm_mAP',
    'mIoU (%)': 'mIoU',
}


def call_demo(*args):
    return subprocess.run(
        [sys.executable, '-m', 'experiments.demo', *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


# One worker runs the demonstration once.
pytestmark = pytest.mark.xdist_group('demo')


@pytest.fixture(scope='module')
def demo(tmp_path_factory):
    """Folder, results and printed text of a short demonstration."""
    # Not in the project's root, so that every path in it is put to the test.
    out = tmp_path_factory.mktemp('demo') / 'out'
    done = call_demo('--out', out, '--iters', str(ITERS))
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((out / 'results.json').read_text())
    return out, {row['key']: row for row in results}, done.stdout


def logged(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_tables(path):
    """The page's tables of numbers: ``{run: {fact: text}}``."""
    page = html.unescape(path.read_text())
    table = {}
    for part in re.findall('<table>.*?</table>', page, re.DOTALL):
        head, *rows = re.findall('<tr>(.*)</tr>', part)
        titles = re.findall('<th>(.*?)</th>', head)[1:]
        for row in rows:
            (name,) = re.findall('<th>(.*?)</th>', row)
            texts = re.findall('<td>(.*?)</td>', row)
            for title, text in zip(titles, texts, strict=True):
                table.setdefault(title, {})[name] = text
    return table


def test_table_equals_logs(demo):
    out, results, printed = demo
    assert list(results) == [
        'inline_pvt',
        'swin',
        'inline_pvt_frozen',
        'segmentation',
    ]
    page = read_tables(out / 'index.html')
    for row in results.values():
        # Of another work directory than the other rows'.
        assert row['key'] in row['scalars']
        records = logged(out / row['scalars'])
        (test,) = logged(out / row['test_log'])
        (last_val,) = [
            r for r in records if r['step'] == ITERS and 'loss' not in r
        ]
        train = [r for r in records if 'loss' in r]
        assert [r['step'] for r in train] == list(range(1, ITERS + 1))
        times = [r['time'] for r in train]
        assert row['seconds_per_iteration'] == np.median(times)
        cells = {'s / iteration': f'{row["seconds_per_iteration"]:.3f}'}
        for name, value in row['metrics'].items():
            assert value == test[LOGGED[name]] == last_val[LOGGED[name]]
            cells[name] = f'{value:g}'
        for name, cell in cells.items():
            assert page[row['title']][name] == cell
        assert cells['s / iteration'] in printed
    for text in ((out / 'index.html').read_text(), printed):
        assert 'they do not compare the methods' in ' '.join(text.split())


def test_facts_of_the_models(demo):
    _, results, _ = demo
    for row in results.values():
        cfg = Config.fromfile(ROOT / row['config'])
        init_default_scope(cfg.default_scope)
        model = MODELS.build(cfg.model)
        count = sum(p.numel() for p in model.parameters())
        assert row['params'] == count
        assert row['params'] > row['backbone_params'] > 1e6
        assert row['macs'] > row['backbone_macs'] > 5e7
        assert row['init'] == 'random'
        assert row['iterations'] == ITERS
    pvt, frozen = results['inline_pvt'], results['inline_pvt_frozen']
    assert pvt['backbone_tensors_moved'] == pvt['backbone_tensors']
    assert frozen['backbone_tensors_moved'] == 0
    for fact in ('params', 'macs', 'backbone_macs', 'size', 'data'):
        assert pvt[fact] == frozen[fact]


@pytest.mark.parametrize(
    'key, folder',
    [
        ('inline_pvt', 'coco/train2017'),
        ('swin', 'coco/train2017'),
        ('inline_pvt_frozen', 'coco/train2017'),
        ('segmentation', 'ade/images/validation'),
    ],
)
def test_drawings_show_annotation_beside_result(demo, key, folder):
    out, results, _ = demo
    drawings = [out / path for path in results[key]['drawings']]
    sources = sorted((ROOT / 'tests/data' / folder).iterdir())
    assert [p.name for p in drawings] == [p.name for p in sources]
    page = (out / 'index.html').read_text()
    for drawing, source in zip(drawings, sources, strict=True):
        drawn = np.asarray(Image.open(drawing), dtype=int)
        plain = np.asarray(Image.open(source).convert('RGB'), dtype=int)
        height, width, _ = plain.shape
        assert drawn.shape == (height, 2 * width, 3)
        # More than what JPEG changes: the annotation is drawn.
        assert abs(drawn[:, :width] - plain).max() > 100
        assert f'src="{drawing.relative_to(out).as_posix()}"' in page


def test_curves(demo):
    out, _, _ = demo
    curves = np.asarray(Image.open(out / 'curves.png').convert('RGB'))
    assert curves.shape[0] > 600 and curves.shape[1] > 1000
    # The four lines' colours are there.
    colors = {tuple(c) for c in curves.reshape(-1, 3)}
    lines = {(0, 114, 178), (230, 159, 0), (127, 127, 127), (0, 158, 115)}
    assert lines <= colors


def test_again_replaces_a_demonstration(tmp_path):
    out = tmp_path / 'out'
    prepare_out(out)
    (out / 'results.json').write_text('old')
    prepare_out(out)
    assert [p.name for p in out.iterdir()] == [MARKER]


def test_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / 'thesis.txt').write_text('years of work')
    done = call_demo('--out', tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(r'demo: .*thing else.*--out\n', done.stderr)
    assert [p.name for p in tmp_path.iterdir()] == ['thesis.txt']


def test_too_few_iterations(tmp_path):
    done = call_demo('--out', tmp_path / 'out', '--iters', '1')
    assert done.returncode == 1
    assert done.stderr.count('\n') == 1
    assert '--iters is 1' in done.stderr
    assert not (tmp_path / 'out').exists()

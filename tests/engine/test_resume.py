"""Runs that stop and go on, and what their checkpoints and records say."""

import argparse
import hashlib
import json
import math

import numpy as np
import pytest
import torch
from forked import run_script
from mmengine.runner.checkpoint import get_torch_safe_globals
from result_records import make_record
from tiny import DET, OPTIONS, SEG, TOOLS, build_model, lay_out_data

import inline_mm
from inline_mm.compare import compare
from inline_mm.engine import launch
from inline_mm.results import record
from tools._command import add_common_arguments

# Runs of two halves; the segmentor validates where it can be resumed.
HALVES = {
    DET: ['train_cfg.max_epochs=2', 'train_cfg.val_begin=9'],
    SEG: [
        'train_cfg.max_iters=6',
        'train_cfg.val_interval=3',
        'default_hooks.checkpoint.interval=3',
        'model.backbone.drop_path_rate=0.5',
    ],
}
MIDDLE = {DET: 'epoch_1.pth', SEG: 'iter_3.pth'}
END = {DET: 'epoch_2.pth', SEG: 'iter_6.pth'}
STEPS = {DET: (2, 4), SEG: (3, 6)}


def run_ok(folder, *command):
    done = run_script(folder, *command)
    assert done.returncode == 0, done.output[-3000:]
    return done.output


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def options(name):
    """Those of `tiny`, with an optimizer to resume and weights to start."""
    return [
        *(o for o in OPTIONS[name] if 'init_cfg' not in o),
        'model.backbone.init_cfg.checkpoint=init.pth',
        'default_hooks.checkpoint.save_optimizer=True',
        'log_processor.window_size=1',
        *HALVES[name],
    ]


def write_weights(name, path):
    """The backbone's own random weights, as a file to start from."""
    parser = argparse.ArgumentParser()
    parser.add_argument('config')
    add_common_arguments(parser)
    arguments = [name, '--cfg-options', *OPTIONS[name]]
    cfg = launch.load_config(parser.parse_args(arguments))
    torch.save(build_model(cfg).backbone.state_dict(), path)


def read_scalars(folder):
    """Losses and learning rates of a run by iteration, as logged."""
    (path,) = folder.glob('*/vis_data/scalars.json')
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        row['iter']: {
            key: value
            for key, value in row.items()
            if key == 'lr' or 'loss' in key
        }
        for row in rows
        if 'loss' in row
    }


# A group stays on one worker, which trains its model once.
@pytest.fixture(
    scope='module',
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(f'resume-{name}'))
        for name in (DET, SEG)
    ],
)
def straight(request, tmp_path_factory):
    """A config and the folder where it was trained without a stop."""
    name = request.param
    folder = tmp_path_factory.mktemp('resume')
    lay_out_data(folder)
    write_weights(name, folder / 'init.pth')
    command = [TOOLS / 'train.py', name, '--cfg-options', *options(name)]
    output = run_ok(folder, *command, 'work_dir=straight')
    return name, folder, output


def test_header_and_checkpoint_say_how_the_backbone_began(straight):
    name, folder, output = straight
    digest = sha256(folder / 'init.pth')
    checkpoint = folder / 'straight' / MIDDLE[name]
    # Nothing is executed to read what the hook adds.
    with torch.serialization.safe_globals(get_torch_safe_globals()):
        meta = torch.load(checkpoint, weights_only=True)['meta']
    found = meta['backbone_init']
    assert found['sha256'] == digest
    assert found['matched'] == found['total'] > 0
    count = f'{found["total"]} of {found["total"]}'
    text = f'init.pth (sha256 {digest[:8]}, matched {count})'
    assert found['text'].endswith(text)
    assert f'{text}\n' in output
    torch.save([found, meta['random_state']], folder / 'added.pth')
    torch.load(folder / 'added.pth', weights_only=True)


def test_resumed_run_repeats_the_straight_one(straight):
    """Without a seed, data order, augmentation, dropout and drop path."""
    name, folder, _ = straight
    output = run_ok(
        folder,
        TOOLS / 'train.py',
        name,
        f'--resume=straight/{MIDDLE[name]}',
        '--work-dir=resumed',
        '--cfg-options',
        *options(name),
        # The checkpoint has all weights; their first source may be gone.
        'model.backbone.init_cfg.checkpoint=gone.pth',
    )
    assert 'Could not safely load' not in output
    assert 'initialisation: ' in output
    half, end = STEPS[name]
    whole = read_scalars(folder / 'straight')
    assert list(whole) == list(range(1, end + 1))
    again = read_scalars(folder / 'resumed')
    assert again == {step: whole[step] for step in range(half + 1, end + 1)}
    losses = [row['loss'] for row in whole.values()]
    assert len(set(losses)) == end
    weights = [
        torch.load(folder / run / END[name], weights_only=False)['state_dict']
        for run in ('straight', 'resumed')
    ]
    for key, value in weights[0].items():
        assert torch.equal(value, weights[1][key]), key


def test_result_file(straight):
    name, folder, _ = straight
    checkpoint = folder / 'straight' / END[name]
    run_ok(
        folder,
        TOOLS / 'test.py',
        name,
        checkpoint,
        '--result=results/test.json',
        '--cfg-options',
        *options(name),
    )
    (path,) = (folder / 'results').iterdir()
    result = json.loads(path.read_text())
    score = {DET: 'coco/bbox_mAP', SEG: 'mIoU'}[name]
    assert 0 <= result['metrics'][score] <= 100
    assert result['config']['name'] == name
    assert len(result['config']['sha256']) == 64
    assert result['checkpoint']['sha256'] == sha256(checkpoint)
    began = result['initialisation']
    assert began['sha256'] == sha256(folder / 'init.pth')
    assert began['text'] == result['initialisation_text']
    assert result['batch_size'] == 1
    assert result['tta'] is False
    assert result['versions']['inline_mm'] == inline_mm.__version__
    assert result['versions']['torch'] == torch.__version__
    host = dict(zip((DET, SEG), ('mmdet', 'mmseg'), strict=True))[name]
    assert host in result['versions']
    check_record(result, name)


def check_record(result, name):
    """Every fact is known of a run that our launchers trained and tested."""
    assert set(result) == set(make_record())
    score, by_class, images = {
        DET: ('box_ap', {'box_ap', 'mask_ap'}, 4),
        SEG: ('miou', {'iou', 'acc'}, 3),
    }[name]
    host_score = {DET: 'coco/bbox_mAP', SEG: 'mIoU'}[name]
    factor = {DET: 100, SEG: 1}[name]
    assert result['scores'][score] == pytest.approx(
        factor * result['metrics'][host_score]
    )
    assert set(result['per_class']) == by_class
    assert all(len(v) in (80, 150) for v in result['per_class'].values())
    for part in ('training', 'model', 'latency'):
        assert set(result[part]) == set(make_record()[part])
    training = result['training']
    planned = {DET: 'epochs', SEG: 'iterations'}[name]
    assert training[planned] == training[f'done_{planned}']
    assert training['batch']['images'] == 2
    assert training['seed'] is not None
    for data in (*training['data'], *result['test_data']):
        assert len(data['sha256']) == 64
    assert result['test_data'][0]['images'] == images
    assert result['test_scale'][0].endswith('with its ratio kept')
    assert result['model']['params'] > 1e5 and result['model']['flops'] > 1e8
    assert result['latency']['ms'] > 0
    (section,) = compare([result]).sections
    assert section.remarks() == []


@pytest.mark.parametrize(
    ('value', 'words'),
    [('a.pkl', ['.json', "'a.pkl'"]), ('folder.json', ['is a folder'])],
)
def test_result_is_refused_before_the_test(tmp_path, value, words):
    (tmp_path / 'folder.json').mkdir()
    done = run_script(
        tmp_path, TOOLS / 'test.py', SEG, 'none.pth', f'--result={value}'
    )
    assert done.returncode == 1
    for word in words:
        assert word in done.output.splitlines()[-1]


def test_metrics_without_a_value_are_null(tmp_path):
    metrics = dict(
        AP=-1.0,
        mIoU=float('nan'),
        acc=np.float32(0.5),
        classes=np.array([1.0, math.inf]),
        top=torch.tensor(2),
        name='a',
    )
    path = tmp_path / 'a.json'
    record.write(path, record.clean(metrics))
    assert json.loads(path.read_text()) == dict(
        AP=None, mIoU=None, acc=0.5, classes=[1.0, None], top=2, name='a'
    )
    # What can't be written leaves the file that was there.
    with pytest.raises(ValueError):
        record.write(path, dict(AP=float('nan')))
    assert [file.name for file in tmp_path.iterdir()] == ['a.json']
    assert json.loads(path.read_text())['acc'] == 0.5

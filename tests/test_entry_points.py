"""Shipped configs through every entry point of the hosts, and through ours.

Each runs in a folder of its own that holds the data in the documented layout
and folders named like those of a clone, which must not get in the way.
"""

import importlib.util
import pickle
import re
from pathlib import Path

import pytest
from forked import run_script
from tiny import (
    CHECKPOINT,
    DATA,
    DET,
    OPTIONS,
    SEG,
    TOOLS,
    lay_out_data,
)

from inline_mm.engine.launch import shipped_configs

IMAGE = {
    DET: DATA / 'coco' / 'val2017' / '000000226111.jpg',
    SEG: DATA / 'ade' / 'images' / 'validation' / 'ADE_val_00000001.jpg',
}
HOST = {DET: 'mmdet', SEG: 'mmseg'}
SCORE = {DET: 'coco/segm_mAP', SEG: 'mIoU'}

DET_SCRIPT = """
import sys
from mmdet.apis import DetInferencer, inference_detector, init_detector

config, checkpoint, image = sys.argv[1:4]
model = init_detector(config, checkpoint, device='cpu')
found = inference_detector(model, image)
assert len(found.pred_instances.bboxes) == len(found.pred_instances.masks) == 5
inferencer = DetInferencer(config, checkpoint, device='cpu')
found = inferencer(image, out_dir='drawn')
assert len(found['predictions'][0]['scores']) == 5
"""
SEG_SCRIPT = """
import sys
from mmseg.apis import MMSegInferencer, inference_model, init_model

config, checkpoint, image = sys.argv[1:4]
model = init_model(config, checkpoint, device='cpu')
labels = inference_model(model, image).pred_sem_seg.data
assert labels.shape == (1, 512, 683), labels.shape
inferencer = MMSegInferencer(config, checkpoint, device='cpu')
found = inferencer(image, out_dir='drawn')
assert found['predictions'].shape == (512, 683)
"""
SCRIPT = {DET: DET_SCRIPT, SEG: SEG_SCRIPT}


def stock_tool(name, tool):
    host = Path(importlib.util.find_spec(HOST[name]).origin).parent
    return host / '.mim' / 'tools' / tool


def run_ok(folder, *command):
    done = run_script(folder, *command)
    assert done.returncode == 0, done.output[-3000:]
    return done.output


def assert_weights_loaded(output):
    """Without mmengine's remark on what a checkpoint lacks."""
    assert 'missing keys' not in output
    assert 'Load checkpoint from ' in output


def make_folder(path):
    lay_out_data(path)
    for package in ('models', 'tools', 'projects', 'configs'):
        (path / package).mkdir()
        (path / package / '__init__.py').touch()
    return path


# A group stays on one worker, which trains its model once.
@pytest.fixture(
    scope='module',
    params=[
        pytest.param(name, marks=pytest.mark.xdist_group(HOST[name]))
        for name in (DET, SEG)
    ],
)
def trained(request, tmp_path_factory):
    """A config and the folder where the host's own train.py trained it."""
    name = request.param
    folder = make_folder(tmp_path_factory.mktemp(HOST[name]))
    run_ok(
        folder,
        stock_tool(name, 'train.py'),
        shipped_configs()[name],
        '--work-dir=stock',
        '--cfg-options',
        *OPTIONS[name],
    )
    return name, folder


def test_stock_train(trained):
    name, folder = trained
    assert (folder / 'stock' / CHECKPOINT[name]).is_file()


def test_stock_test(trained):
    name, folder = trained
    output = run_ok(
        folder,
        stock_tool(name, 'test.py'),
        shipped_configs()[name],
        folder / 'stock' / CHECKPOINT[name],
        '--work-dir=stock-test',
        '--cfg-options',
        *OPTIONS[name],
    )
    assert f'{SCORE[name]}: ' in output
    assert_weights_loaded(output)


def test_scripts(trained):
    """The hosts' functions and inferencers, with no import of ours."""
    name, folder = trained
    (folder / 'script.py').write_text(SCRIPT[name])
    run_ok(
        folder,
        'script.py',
        # The run's dumped config: the shipped one with the options applied.
        folder / 'stock' / f'{name}.py',
        folder / 'stock' / CHECKPOINT[name],
        IMAGE[name],
    )
    assert list((folder / 'drawn' / 'vis').iterdir())


def test_our_test(trained):
    name, folder = trained
    output = run_ok(
        folder,
        TOOLS / 'test.py',
        name,
        f'stock/{CHECKPOINT[name]}',
        '--work-dir=ours',
        '--out=ours/predictions.pkl',
        '--show-dir=ours/drawn',
        '--cfg-options',
        *OPTIONS[name],
    )
    assert f'{SCORE[name]}: ' in output
    assert_weights_loaded(output)
    with open(folder / 'ours' / 'predictions.pkl', 'rb') as file:
        predictions = pickle.load(file)
    images = list(IMAGE[name].parent.iterdir())
    assert len(predictions) == len(images)
    assert len(list((folder / 'ours' / 'drawn').iterdir())) == len(images)
    kept = dict(mmdet='pred_instances', mmseg='pred_sem_seg')[HOST[name]]
    assert all(kept in prediction for prediction in predictions)
    assert all('seg_logits' not in prediction for prediction in predictions)


def test_our_train_and_resume(trained):
    name, folder = trained
    length = dict(mmdet='max_epochs', mmseg='max_iters')[HOST[name]]
    steps = dict(mmdet=2, mmseg=4)[HOST[name]]
    output = run_ok(
        folder,
        TOOLS / 'train.py',
        name,
        '--work-dir=ours-train',
        f'--resume=stock/{CHECKPOINT[name]}',
        '--auto-scale-lr',
        '--cfg-options',
        *OPTIONS[name],
        f'train_cfg.{length}={steps}',
    )
    newest = (folder / 'ours-train' / 'last_checkpoint').read_text()
    assert newest.endswith(('epoch_2.pth', 'iter_4.pth'))
    # Of the two epochs, or four iterations, the first half came from the file.
    logged = re.findall(r'(?:Epoch|Iter)\(train\) +\[ *(\d+)', output)
    first = dict(mmdet='2', mmseg='3')[HOST[name]]
    assert logged[0] == first, logged
    lr = dict(mmdet=2e-4, mmseg=6e-5)[HOST[name]]
    scaled = f'learning rate {lr / 8:g}, scaled from a recipe for 16 images'
    assert scaled in output


def test_our_test_with_augmentation(trained):
    name, folder = trained
    options = {
        # mmdet merges boxes only; this is what the refusal recommends.
        DET: [
            'model.roi_head.mask_head=None',
            'model.roi_head.mask_roi_extractor=None',
            'test_evaluator.metric=bbox',
        ],
        SEG: [
            f'tta_pipeline.1.transforms.0.{i}.scale=(256,{32 * i + 32})'
            for i in range(6)
        ],
    }[name]
    output = run_ok(
        folder,
        TOOLS / 'test.py',
        name,
        f'stock/{CHECKPOINT[name]}',
        '--work-dir=augmented',
        '--tta',
        '--cfg-options',
        *OPTIONS[name],
        'test_dataloader.dataset.indices=1',
        *options,
    )
    assert dict(mmdet='coco/bbox_mAP: ', mmseg='mIoU: ')[HOST[name]] in output
    assert_weights_loaded(output)

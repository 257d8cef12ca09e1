"""The slips of first-time users, each caught in a sentence."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from forked import ENVIRONMENT, run_script
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, METRICS
from own_data import (
    edit_json,
    faults,
    load_own,
    shrink,
    write_coco,
    write_masks,
)
from PIL import Image
from tiny import TOOLS, build_model

from inline_mm.data_check import check_data, count_images


@pytest.fixture(scope='module')
def coco(tmp_path_factory):
    root = tmp_path_factory.mktemp('coco')
    write_coco(root)
    return root


@pytest.fixture(scope='module')
def masks(tmp_path_factory):
    root = tmp_path_factory.mktemp('masks')
    write_masks(root)
    return root


def set_classes(cfg, classes):
    for split in ('train', 'val', 'test'):
        cfg[f'{split}_dataloader'].dataset.metainfo = dict(classes=classes)


@pytest.mark.parametrize('kind', ['mask', 'cascade'])
def test_right_coco_data_pass(coco, kind):
    report = check_data(load_own(kind, coco))
    assert report.faults == [] and report.oddities == []
    assert report.files_read == report.files_seen == 16


def test_other_case_of_a_class_name(coco):
    cfg = load_own('mask', coco)
    set_classes(cfg, ('Red', 'Green'))
    sentence, _ = faults(cfg)
    for part in (
        'train.json',
        "no category 'Red'",
        "but 'red'",
        "the file has 'red', 'green', the config 'Red', 'Green'",
    ):
        assert part in sentence


def test_other_order_of_the_classes(coco):
    cfg = load_own('mask', coco)
    set_classes(cfg, ('green', 'red'))
    assert 'in another order than in' in faults(cfg)[0]


@pytest.mark.parametrize(
    ('kind', 'paths'),
    [
        ('mask', ['bbox_head.num_classes=80', 'mask_head.num_classes=80']),
        (
            'cascade',
            ['bbox_head[1].num_classes=80', 'bbox_head[2].num_classes=80'],
        ),
    ],
)
def test_class_count_left_in_a_head(coco, kind, paths):
    cfg = load_own(kind, coco)
    heads = cfg.model.roi_head
    if kind == 'mask':
        heads.bbox_head.num_classes = heads.mask_head.num_classes = 80
    else:  # only the first of three was changed
        for head in heads.bbox_head[1:]:
            head.num_classes = 80
    sentence = faults(cfg)[0]
    for part in (*paths, '2 classes', "'red', 'green'"):
        assert part in sentence
    assert 'bbox_head[0]' not in sentence


@pytest.mark.parametrize('kind', ['mask', 'upernet'])
def test_one_class_without_its_comma(coco, masks, kind):
    cfg = load_own(kind, coco if kind == 'mask' else masks)
    set_classes(cfg, 'red')
    assert "classes=('red',)" in faults(cfg)[0]


def test_wrong_annotation_path(coco):
    cfg = load_own('mask', coco)
    cfg.train_dataloader.dataset.ann_file = 'anns/train.json'
    sentence = faults(cfg)[0]
    path = coco / 'anns' / 'train.json'
    assert f'{path} does not exist' in sentence
    assert "has no 'anns'" in sentence


def test_evaluator_left_at_another_file(coco, tmp_path):
    cfg = load_own('mask', coco)
    other = tmp_path / 'other.json'
    other.write_text((coco / 'val.json').read_text())
    edit_json(other, lambda data: data['images'].pop())
    cfg.val_evaluator.ann_file = str(other)
    sentence = faults(cfg)[0]
    assert 'lacks 1 of the 8 images' in sentence
    assert 'val_evaluator.ann_file' in sentence


def test_perfect_predictions_have_ap_1(coco):
    """Although the category ids are 7 and 3."""
    cfg = load_own('mask', coco)
    with DATASETS.switch_scope_and_registry('mmdet') as registry:
        dataset = registry.build(cfg.test_dataloader.dataset)
    with METRICS.switch_scope_and_registry('mmdet') as registry:
        metric = registry.build({**cfg.test_evaluator, 'metric': 'bbox'})
    metric.dataset_meta = dataset.metainfo
    for index in range(len(dataset)):
        info = dataset.get_data_info(index)
        objects = info['instances']
        boxes = torch.tensor([o['bbox'] for o in objects]).reshape(-1, 4)
        predicted = dict(
            bboxes=boxes.float(),
            scores=torch.ones(len(objects)),
            labels=torch.tensor([o['bbox_label'] for o in objects]).long(),
        )
        sample = dict(
            pred_instances=predicted,
            img_id=info['img_id'],
            ori_shape=(info['height'], info['width']),
        )
        metric.process({}, [sample])
    assert metric.evaluate(len(dataset))['coco/bbox_mAP'] == 1.0


@pytest.mark.parametrize('kind', ['upernet', 'fpn'])
def test_right_masks_pass(masks, kind):
    assert check_data(load_own(kind, masks)).faults == []


def set_flag(cfg, flag, classes='abcd'):
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.reduce_zero_label = flag
        dataset.metainfo = dict(classes=tuple(classes))
    for name in ('decode_head', 'auxiliary_head'):
        if name in cfg.model:
            cfg.model[name].num_classes = len(classes)


def test_zero_as_a_class_of_its_own(masks):
    cfg = load_own('upernet', masks)
    set_flag(cfg, False, 'oabcd')
    assert faults(cfg) == []


def test_one_class_too_few(masks):
    cfg = load_own('upernet', masks)
    set_flag(cfg, False)
    sentence = faults(cfg)[0]
    for part in (
        'label 4 in',
        '0.png',
        'reduce_zero_label=False',
        'may hold 0 to 3',
        'hold 0 to 4',
        'set reduce_zero_label=True',
    ):
        assert part in sentence


def test_flags_that_disagree(masks):
    cfg = load_own('upernet', masks)
    cfg.train_dataloader.dataset.pipeline[1].reduce_zero_label = False
    sentence = faults(cfg)[0]
    assert 'reduce_zero_label is True in the data set' in sentence
    assert 'False in its LoadAnnotations' in sentence


def rewrite(root, change):
    """Replaces every mask by a function of its labels."""
    for path in root.glob('masks/*/*.png'):
        Image.fromarray(change(np.array(Image.open(path)))).save(path)


def test_masks_of_0_and_255(tmp_path):
    write_masks(tmp_path)
    rewrite(tmp_path, lambda mask: np.uint8((mask > 2) * 255))
    cfg = load_own('upernet', tmp_path)
    set_flag(cfg, False, 'ab')
    assert 'only 0 and 255' in faults(cfg)[0]


def test_masks_in_colours(tmp_path):
    write_masks(tmp_path)
    rewrite(tmp_path, lambda mask: np.stack([mask, mask * 2, mask], -1))
    sentence = faults(load_own('fpn', tmp_path))[0]
    assert '3 channels in colours' in sentence and '.png' in sentence


def test_a_palette_is_made_up(masks):
    cfg = load_own('upernet', masks)
    with DATASETS.switch_scope_and_registry('mmseg') as registry:
        dataset = registry.build(cfg.train_dataloader.dataset)
    assert np.shape(dataset.metainfo['palette']) == (4, 3)


def test_kept_images_are_counted(coco):
    cfg = load_own('mask', coco)
    count = check_data(cfg, 'train').counts[0]
    assert '7 of 8 images' in str(count)
    assert '1 without objects (filter_cfg.filter_empty_gt)' in str(count)
    with DATASETS.switch_scope_and_registry('mmdet') as registry:
        built = registry.build(
            dict(
                type='RepeatDataset',
                times=2,
                dataset=cfg.train_dataloader.dataset,
            )
        )
    (counted,) = count_images(built)
    assert (counted.total, counted.kept) == (8, 7)


def drop_objects(path, *image_ids):
    def change(data):
        data['annotations'] = [
            a for a in data['annotations'] if a['image_id'] not in image_ids
        ]

    edit_json(path, change)


def test_batch_of_images_without_objects(tmp_path):
    write_coco(tmp_path)
    drop_objects(tmp_path / 'train.json', 1, 2)
    cfg = shrink(load_own('mask', tmp_path))
    assert check_data(cfg, 'train').counts[0].kept == 5
    cfg.train_dataloader.dataset.filter_cfg.filter_empty_gt = False
    assert check_data(cfg, 'train').counts[0].kept == 8
    with DATASETS.switch_scope_and_registry('mmdet') as registry:
        dataset = registry.build(cfg.train_dataloader.dataset)
    torch.manual_seed(0)
    model = build_model(cfg).train()
    batch = pseudo_collate([dataset[0], dataset[1]])
    batch = model.data_preprocessor(batch, training=True)
    loss, _ = model.parse_losses(model(**batch, mode='loss'))
    loss.backward()
    assert torch.isfinite(loss)
    gradients = [p.grad for p in model.backbone.parameters()]
    assert all(g is not None and g.isfinite().all() for g in gradients)


def write_run(kind, tmp_path, change=None):
    """A folder with data and a config file of a run that takes seconds."""
    masks = kind in ('upernet', 'fpn')
    (write_masks if masks else write_coco)(tmp_path / 'data')
    cfg = shrink(load_own(kind, tmp_path / 'data'))
    if change:
        change(cfg)
    cfg.dump(tmp_path / 'run.py')


@pytest.mark.parametrize(
    'kind',
    [
        'mask',
        'upernet',
        pytest.param('cascade', marks=pytest.mark.heavy),
        pytest.param('fpn', marks=pytest.mark.heavy),
    ],
)
def test_own_data_train_and_evaluate(tmp_path, kind):
    write_run(kind, tmp_path)
    done = run_script(tmp_path, TOOLS / 'train.py', 'run.py')
    assert done.returncode == 0, done.output[-3000:]
    assert 'data check: opened' in done.output
    # Once, although the config has the hook as well.
    assert done.output.count('data check: opened') == 1
    logs = list(tmp_path.glob('work_dirs/run/*/*.log'))
    log = logs[0].read_text()
    if kind in ('mask', 'cascade'):
        assert '7 of 8 images' in log
        assert 'coco/bbox_mAP' in log
    else:
        results = log[log.index('per class results') :]
        assert 'mIoU' in results and 'nan' not in results


def test_same_seed_same_losses_with_syncbn_on_a_cpu(tmp_path):
    def change(cfg):
        cfg.randomness = dict(seed=0, deterministic=True)

    write_run('upernet', tmp_path, change)
    assert "type='SyncBN'" in (tmp_path / 'run.py').read_text()
    losses = []
    for name in ('a', 'b'):
        train = TOOLS / 'train.py', 'run.py', f'--work-dir={name}'
        done = run_script(tmp_path, *train)
        assert done.returncode == 0, done.output[-3000:]
        (scalars,) = (tmp_path / name).glob('*/vis_data/scalars.json')
        lines = map(json.loads, scalars.read_text().splitlines())
        losses.append([line['loss'] for line in lines if 'loss' in line])
    assert len(losses[0]) == 2 and losses[0] == losses[1]

    from mmseg.apis import inference_model, init_model

    model = init_model(
        str(tmp_path / 'run.py'), str(tmp_path / 'a' / 'iter_2.pth'), 'cpu'
    )
    assert model.dataset_meta['classes'] == tuple('abcd')
    image = tmp_path / 'data' / 'images' / 'val' / '0.jpg'
    labels = inference_model(model, str(image)).pred_sem_seg.data
    assert labels.shape == (1, 96, 128)


@pytest.mark.heavy
def test_one_of_two_processes_without_objects(tmp_path):
    """Neither hangs: the batch still gives every parameter a gradient."""

    def change(cfg):
        cfg.train_dataloader.dataset.filter_cfg.filter_empty_gt = False
        cfg.train_dataloader.sampler = dict(
            type='DefaultSampler', shuffle=False
        )
        cfg.train_cfg.val_interval = 9

    write_run('mask', tmp_path, change)
    drop_objects(tmp_path / 'data' / 'train.json', 1, 3)  # the first process
    done = subprocess.run(
        [TOOLS / 'dist_train.sh', 'run.py', '2'],
        cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT, 'PYTHON': sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert '8 of 8 images' in done.stdout
    assert (tmp_path / 'work_dirs' / 'run' / 'iter_2.pth').is_file()


@pytest.mark.heavy
def test_all_processes_end_at_a_fault(tmp_path):
    write_run('mask', tmp_path, lambda cfg: set_classes(cfg, ('Red', 'green')))
    done = subprocess.run(
        [TOOLS / 'dist_train.sh', 'run.py', '2'],
        cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT, 'PYTHON': sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert done.stderr.count('train.py: train: ') == 1
    assert 'inline_mm/engine' not in done.stderr  # no traceback of ours


@pytest.mark.parametrize('tool', ['train.py', 'check_data.py'])
def test_tools_end_with_a_sentence(tmp_path, tool):
    write_run('mask', tmp_path, lambda cfg: set_classes(cfg, ('Red', 'green')))
    done = run_script(tmp_path, TOOLS / tool, 'run.py')
    assert done.returncode not in (0, None)
    assert 'Traceback' not in done.output
    last = done.output.splitlines()[-1]
    assert last.startswith(f'{tool}: train: ') and "'Red'" in last


def test_check_data_passes(tmp_path):
    write_run('mask', tmp_path)
    done = run_script(tmp_path, TOOLS / 'check_data.py', 'run.py', '--all')
    assert done.returncode == 0, done.output

"""Where the check runs, and what it leaves alone."""

import pytest
from mmengine.config import Config
from own_data import load_own, shrink, write_coco, write_masks
from tiny import DATA, DET, SEG, lay_out_data

from inline_mm.data_check import (
    DataError,
    check,
    check_before_run,
    check_data,
    count_images,
)
from inline_mm.engine.launch import shipped_configs

DEMOS = [
    'mask-rcnn_inline-pvt-demo_fpn_200it_coco8',
    'fpn_inline-pvt-demo_1xb3-120it_ade3-128x128',
]


@pytest.mark.parametrize('name', DEMOS)
def test_demonstrations_have_no_fault(name):
    report = check_data(Config.fromfile(shipped_configs()[name]))
    assert report.faults == [] and report.files_read == report.files_seen > 0


@pytest.mark.parametrize('name', [DET, SEG])
def test_shipped_recipes_have_no_fault(tmp_path, monkeypatch, name):
    lay_out_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    cfg = Config.fromfile(shipped_configs()[name])
    if name == SEG:  # only validation pairs are bundled
        dataset = cfg.train_dataloader.dataset
        dataset.data_prefix = cfg.val_dataloader.dataset.data_prefix
    report = check_data(cfg)
    assert report.faults == [] and report.files_read == report.files_seen > 0


WRAPPERS = {
    'RepeatDataset': lambda d: dict(type='RepeatDataset', times=2, dataset=d),
    'ConcatDataset': lambda d: dict(type='ConcatDataset', datasets=[d, d]),
    'ClassBalancedDataset': lambda d: dict(
        type='ClassBalancedDataset', oversample_thr=0.1, dataset=d
    ),
    'MultiImageMixDataset': lambda d: dict(
        type='MultiImageMixDataset', dataset=d, pipeline=[]
    ),
}


@pytest.mark.parametrize('wrapper', WRAPPERS)
def test_wrapped_data_are_checked(tmp_path, wrapper):
    write_coco(tmp_path)
    cfg = load_own('mask', tmp_path)
    loader = cfg.train_dataloader
    loader.dataset = WRAPPERS[wrapper](loader.dataset)
    assert check_data(cfg).faults == []
    inner = loader.dataset.get('dataset') or loader.dataset.datasets[0]
    inner.ann_file = 'none.json'
    assert 'none.json does not exist' in check_data(cfg).faults[0]


def test_other_data_sets_are_named(tmp_path):
    write_coco(tmp_path)
    cfg = load_own('mask', tmp_path)
    cfg.train_dataloader.dataset.type = 'LVISV1Dataset'
    cfg.val_dataloader.dataset.backend_args = dict(backend='petrel')
    report = check_data(cfg, 'train')
    assert report.faults == []
    assert 'type LVISV1Dataset can not be checked' in report.oddities[0]
    assert 'not plain files of this machine' in report.oddities[1]


def test_unknown_type_and_argument(tmp_path):
    write_coco(tmp_path)
    cfg = load_own('mask', tmp_path)
    cfg.train_dataloader.dataset.type = 'CocoDateset'
    cfg.val_dataloader.dataset.anns = 'val.json'
    first, second = check_data(cfg, 'train').faults
    assert 'CocoDateset' in first and "'anns'" in second


def test_a_file_of_names(tmp_path):
    write_coco(tmp_path)
    (tmp_path / 'names.txt').write_text('red\ngreen\n')
    cfg = load_own('mask', tmp_path)
    names = dict(classes=str(tmp_path / 'names.txt'))
    cfg.train_dataloader.dataset.metainfo = names
    assert check_data(cfg, 'train').faults == []


def test_more_classes_than_colours(tmp_path):
    write_coco(tmp_path)
    cfg = load_own('mask', tmp_path)
    classes = ('red', 'green', *(f'c{i}' for i in range(90)))
    metainfo = dict(classes=classes)
    cfg.train_dataloader.dataset.metainfo = metainfo
    (remark,) = check_data(cfg, 'train').oddities
    assert '80 colours for 92 classes' in remark
    cfg.train_dataloader.dataset.metainfo = dict(metainfo, palette=None)
    assert check_data(cfg, 'train').oddities == []


def test_predictions_without_annotations(tmp_path):
    """An image list as of COCO's test-dev split."""
    write_coco(tmp_path)
    path = tmp_path / 'val.json'
    text = path.read_text()
    path.write_text(text.replace('"annotations"', '"unused"'))
    cfg = load_own('mask', tmp_path)
    assert 'format_only=True' in check_data(cfg, 'test').sentence()
    cfg.test_evaluator.update(format_only=True, outfile_prefix='out')
    assert check_data(cfg, 'test').faults == []


def test_hook_checks_once(tmp_path, monkeypatch):
    write_masks(tmp_path)
    cfg = shrink(load_own('upernet', tmp_path))
    cfg.work_dir = str(tmp_path / 'out')
    calls = []
    real = check.check_data
    monkeypatch.setattr(
        check, 'check_data', lambda *args: calls.append(args) or real(*args)
    )
    check_before_run(cfg, 'train')
    check_before_run(cfg, 'train')
    assert len(calls) == 1
    cfg.model.decode_head.num_classes = 150
    with pytest.raises(DataError, match=r'head\.num_classes=150'):
        check_before_run(cfg, 'train')
    assert len(calls) == 2


def test_counts_of_built_data_sets():
    from mmseg.datasets import ADE20KDataset

    folder = 'validation'
    dataset = ADE20KDataset(
        data_root=str(DATA / 'ade'),
        data_prefix=dict(
            img_path=f'images/{folder}', seg_map_path=f'annotations/{folder}'
        ),
    )
    (count,) = count_images(dataset)
    assert (count.total, count.kept, count.dropped) == (3, 3, {})

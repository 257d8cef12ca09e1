"""The example configs for data of one's own, copied and edited."""

import re

import pytest
from forked import run_script
from mmengine.config import Config
from own_data import OWN, load_cells, shrink
from tiny import TOOLS

from inline_mm.data_check.config import data_loaders, heads
from inline_mm.engine.launch import shipped_configs

HEADS = {'mask': 2, 'cascade': 4, 'upernet': 2}  # of the others 1
BOXES = [kind for kind in OWN if OWN[kind].startswith(('faster', 'retina'))]
CLASSES = ('one', 'two', 'three')


@pytest.mark.parametrize('kind', OWN)
def test_one_setting_drives_every_head(kind, tmp_path):
    path = shipped_configs()[OWN[kind]]
    text, edits = re.subn(
        r'^classes = \(.*\)',
        f'classes = {CLASSES}',
        path.read_text(),
        flags=re.M,
    )
    assert edits == 1
    text = text.replace("'../inline_", f"'{path.parents[1]}/inline_")
    (tmp_path / 'mine.py').write_text(text)
    cfg = Config.fromfile(tmp_path / 'mine.py')
    numbers = [number for _, number in heads(cfg.model)]
    assert numbers == [3] * HEADS.get(kind, 1)
    splits = list(data_loaders(cfg, 'all'))
    assert [split for split, *_ in splits] == ['train', 'val']  # val is test
    assert all(d.metainfo.classes == CLASSES for _, d, _ in splits)
    assert 'palette' not in text


@pytest.mark.parametrize('kind', BOXES)
def test_boxes_alone_train_and_evaluate(kind, tmp_path):
    cfg = shrink(load_cells(kind))
    cfg.train_cfg.update(max_iters=1, val_interval=1)
    cfg.dump(tmp_path / 'run.py')
    done = run_script(tmp_path, TOOLS / 'train.py', 'run.py')
    assert done.returncode == 0, done.output[-3000:]
    metric = 'pascal_voc/mAP' if 'voc' in kind else 'coco/bbox_mAP'
    assert re.search(rf'{metric}: [\d.-]+', done.output), done.output[-3000:]

"""The example configs for data of one's own, copied and edited."""

import re

import pytest
from mmengine.config import Config
from own_data import OWN

from inline_mm.data_check.config import data_loaders, heads
from inline_mm.engine.launch import shipped_configs

HEADS = {'mask': 2, 'cascade': 4, 'upernet': 2, 'fpn': 1}
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
    assert numbers == [3] * HEADS[kind]
    splits = list(data_loaders(cfg, 'all'))
    assert [split for split, *_ in splits] == ['train', 'val']  # val is test
    assert all(d.metainfo.classes == CLASSES for _, d, _ in splits)
    assert 'palette' not in text

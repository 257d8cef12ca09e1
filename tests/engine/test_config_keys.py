"""Top-level keys that nothing reads: stopped, remarked on, or in use."""

import pytest

from inline_mm.engine import LaunchError, config_keys
from inline_mm.engine.launch import read_config, shipped_configs

DET = 'mask-rcnn_inline-pvt-t_fpn_1x_coco'
SEG = 'fpn_inline-pvt-t_8xb4-40k_ade20k-512x512'


@pytest.fixture
def remarks(monkeypatch):
    said = []
    monkeypatch.setattr(
        config_keys, 'print_log', lambda text, **_: said.append(text)
    )
    return said


def write(folder, lines, base=DET):
    path = folder / 'my.py'
    path.write_text(f"_base_ = '{shipped_configs()[base]}'\n{lines}\n")
    return str(path)


@pytest.mark.parametrize('key', config_keys.OLD)
def test_keys_of_older_versions_stop(tmp_path, key):
    with pytest.raises(LaunchError, match='of mmdet 2') as stopped:
        read_config(write(tmp_path, f'{key} = dict(a=1)'))
    assert repr(key) in str(stopped.value)
    assert config_keys.OLD[key][1] in str(stopped.value)


def test_a_config_of_older_versions_alone(tmp_path):
    path = tmp_path / 'old.py'
    path.write_text("model = dict()\noptimizer = dict(type='SGD')\n")
    with pytest.raises(LaunchError, match='optim_wrapper=dict'):
        read_config(str(path))
    (tmp_path / 'old.json').write_text('{"model": {}, "lr_config": {"a": 1}}')
    with pytest.raises(LaunchError, match='param_scheduler'):
        read_config(str(tmp_path / 'old.json'))


@pytest.mark.parametrize(
    ('key', 'meant'),
    [
        ('train_dataloder', 'train_dataloader'),
        ('optim_wraper', 'optim_wrapper'),
        ('parram_scheduler', 'param_scheduler'),
        ('Val_Evaluator', 'val_evaluator'),
        ('custom_hook', 'custom_hooks'),
        ('default_hoks', 'default_hooks'),
    ],
)
def test_misspelt_keys_stop(tmp_path, key, meant):
    for file, options in (
        (write(tmp_path, f'{key} = dict(b=7)'), None),
        (DET, {f'{key}.b': 7}),
    ):
        with pytest.raises(LaunchError) as stopped:
            read_config(file, options)
        assert f'{key!r}, which nothing reads' in str(stopped.value)
        assert repr(meant) in str(stopped.value)


@pytest.mark.parametrize(
    ('lines', 'base', 'unread'),
    [
        ("data_root = 'mine/'\nmine = 5.25", DET, ["'data_root'", "'mine'"]),
        # The base's variable of this name is used there, not here.
        ("crop_size = (33, 44)\nx = 'y'", SEG, ["'crop_size'", "'x'"]),
        ('rate = 0.0123\nmodel = dict(a=rate)', DET, []),
        (
            'optimizer = dict(lr=5)\noptim_wrapper=dict(optimizer=optimizer)',
            DET,
            [],
        ),
        ('model = dict(a=_base_.crop_size)', SEG, []),
    ],
)
def test_variables_are_remarked_on_if_unused(
    tmp_path, remarks, lines, base, unread
):
    read_config(write(tmp_path, lines, base))
    assert len(remarks) == bool(unread)
    for name in unread:
        assert name in remarks[0]


def test_options_do_not_reach_variables(remarks):
    read_config(DET, dict(data_root='mine/'))
    assert "nothing reads 'data_root'" in remarks[0]


@pytest.mark.parametrize('name', shipped_configs())
def test_nothing_is_said_of_shipped_configs(tmp_path, remarks, name):
    cfg = read_config(name)
    assert remarks == []
    cfg.dump(tmp_path / 'dumped.py')  # as it lies in a work folder
    read_config(str(tmp_path / 'dumped.py'))

"""The hook that keeps a run's beginning and its random state."""

import hashlib

import pytest
import torch
from line import Line, run_line

from inline_mm.engine import RunRecordHook
from inline_mm.engine.hooks import describe_backbone


@pytest.mark.parametrize('by_epoch', [True, False])
def test_only_resuming_restores_the_random_state(tmp_path, by_epoch):
    straight = run_line(tmp_path / 'straight', by_epoch)
    assert len(straight.model.losses) == 6
    middle = 'epoch_1.pth' if by_epoch else 'iter_3.pth'
    start = dict(load_from=str(tmp_path / 'straight' / middle))

    resumed = run_line(tmp_path / 'resumed', by_epoch, resume=True, **start)
    assert resumed.model.losses == straight.model.losses[3:]
    without = run_line(
        tmp_path / 'without', by_epoch, resume=True, custom_hooks=[], **start
    )
    assert without.model.losses != straight.model.losses[3:]

    loaded = [
        run_line(
            tmp_path / f'loaded{i}',
            by_epoch,
            randomness=dict(seed=seed),
            **start,
        )
        for i, seed in enumerate((1, 1, 2))
    ]
    first, second, third = [runner.model.losses for runner in loaded]
    assert first == second
    assert first[0] != third[0]


def find_hook(runner):
    return next(h for h in runner.hooks if isinstance(h, RunRecordHook))


def test_initialisation_in_words(tmp_path):
    first = run_line(tmp_path / 'first', True)
    assert find_hook(first).backbone_init == dict(text='random')
    log = next((tmp_path / 'first').glob('*/*.log')).read_text()
    assert 'initialisation: random\n' in log
    assert 'parameters: 8 to train, 8 frozen\n' in log
    path = tmp_path / 'first' / 'epoch_1.pth'

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    loaded = find_hook(run_line(tmp_path / 'b', True, load_from=str(path)))
    assert loaded.init_text == f'{path} (sha256 {digest[:8]}, ' + (
        'matched 2 of 2)'
    )
    kept = torch.load(tmp_path / 'b' / 'epoch_2.pth', weights_only=False)
    assert kept['meta']['backbone_init'] == loaded.backbone_init
    assert kept['meta']['train_data'] == [
        dict(name='Numbers', images=5, classes=None, sha256=None)
    ]

    # A file of another run that said nothing, and one of another model.
    content = torch.load(path, weights_only=False)
    del content['meta']['backbone_init'], content['meta']['random_state']
    torch.save(content, path)
    settings = dict(load_from=str(path))
    silent = run_line(tmp_path / 'c', True, resume=True, **settings)
    assert find_hook(silent).backbone_init is None
    assert find_hook(silent).init_text == 'unknown'
    content['state_dict'] = dict(weight=torch.zeros(1))
    torch.save(content, path)
    other = run_line(tmp_path / 'd', True, **settings)
    assert find_hook(other).init_text == 'random'


def test_weights_of_a_host_are_named_but_not_counted(tmp_path):
    model = Line()
    init_cfg = dict(type='Pretrained', checkpoint='swin.pth')
    model.backbone.init_cfg = init_cfg
    wanted = dict(text='swin.pth (match not counted)', source='swin.pth')
    assert describe_backbone(model) == wanted
    model.backbone.init_cfg = [dict(type='TruncNormal'), init_cfg]
    assert describe_backbone(model) == wanted

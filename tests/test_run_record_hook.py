"""The hook that keeps a run's beginning and its random state."""

import hashlib

import numpy as np
import pytest
import torch
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner

from inline_mm.engine import RunRecordHook
from inline_mm.engine.hooks import describe_backbone


class Numbers(torch.utils.data.Dataset):
    """Numbers with noise of the process's own generators, or without."""

    def __init__(self, noise):
        self.noise = noise

    def __len__(self):
        return 5

    def __getitem__(self, index):
        if not self.noise:
            return dict(x=torch.ones(1))
        noise = np.random.rand() + torch.rand(()).item()
        return dict(x=torch.tensor([index + noise]))


class Line(BaseModel):
    """The smallest model with a backbone and dropout."""

    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(1, 8)
        self.backbone.weight.requires_grad_(False)
        self.losses = []

    def forward(self, x, mode='tensor'):
        x = torch.stack(x)
        y = torch.nn.functional.dropout(
            self.backbone(x), training=self.training
        )
        if mode == 'loss':
            self.losses.append(y.mean().item())
            return dict(loss=y.square().mean())
        return [y]


class Nothing(BaseMetric):
    """A metric, for the sake of the loop around it."""

    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        return dict(a=0.0)


def run_line(folder, by_epoch, **settings):
    """Trains `Line` without a fixed seed; 2 epochs or 6 iterations."""

    def loader(sampler, noise):
        return dict(
            dataset=Numbers(noise),
            batch_size=2,
            sampler=dict(type=sampler, shuffle=True),
        )

    if by_epoch:
        sampler, interval = 'DefaultSampler', 1
        train_cfg = dict(by_epoch=True, max_epochs=2)
    else:
        sampler, interval = 'InfiniteSampler', 3
        train_cfg = dict(by_epoch=False, max_iters=6, val_interval=3)
    cfg = dict(
        model=Line(),
        work_dir=str(folder),
        train_dataloader=loader(sampler, noise=True),
        train_cfg=train_cfg,
        val_dataloader=loader('DefaultSampler', noise=False),
        val_cfg={},
        val_evaluator=dict(type=Nothing),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        default_hooks=dict(
            checkpoint=dict(
                type='CheckpointHook', interval=interval, by_epoch=by_epoch
            ),
        ),
        custom_hooks=[dict(type='RunRecordHook')],
        # mmengine's default is one dict, which a resumed run changes for all.
        randomness=dict(seed=None),
        experiment_name=f'{folder.parent.name}-{folder.name}',
    )
    runner = Runner(**{**cfg, **settings}, cfg=settings)
    runner.train()
    return runner


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
    assert 'initialised: random; 8 parameters to train, 8 frozen' in log
    path = tmp_path / 'first' / 'epoch_1.pth'

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    loaded = find_hook(run_line(tmp_path / 'b', True, load_from=str(path)))
    assert loaded.init_text == f'{path} (sha256 {digest[:8]}, ' + (
        'matched 2 of 2)'
    )
    kept = torch.load(tmp_path / 'b' / 'epoch_2.pth', weights_only=False)
    assert kept['meta']['backbone_init'] == loaded.backbone_init

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

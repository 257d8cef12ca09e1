"""Runs that stop and go on, and what their checkpoints and records say."""

import argparse
import hashlib
import json
import math

import mmengine
import numpy as np
import pytest
import torch
from forked import run_script
from mmengine.model import BaseModel
from mmengine.runner import Runner
from mmengine.runner.checkpoint import get_torch_safe_globals
from tiny import DET, OPTIONS, SEG, TOOLS, build_model, lay_out_data

import inline_mm
from inline_mm.engine import RunRecordHook, launch, record
from inline_mm.engine.hooks import describe_backbone

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
    launch.add_common_arguments(parser)
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
    assert f'{text}; ' in output
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
    assert 'initialised: ' in output
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


class Nothing(mmengine.evaluator.BaseMetric):
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

    loaded = find_hook(run_line(tmp_path / 'b', True, load_from=str(path)))
    assert loaded.init_text == f'{path} (sha256 {sha256(path)[:8]}, ' + (
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

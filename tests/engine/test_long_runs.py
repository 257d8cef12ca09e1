"""Runs that are stopped, spoiled or out of space lose nothing."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from line import Line, run_line
from mmcv.cnn import ConvModule
from mmengine.config import Config
from mmengine.hooks import Hook
from tiny import SEG, build_model, shrink
from torch import nn

from inline_mm.checkpoint import CheckpointError
from inline_mm.engine import LaunchError, RunStoppedError, saving
from inline_mm.engine.header import _pooled_batch_norm
from inline_mm.engine.launch import find_config
from inline_mm.engine.saving import find_whole_checkpoint
from inline_mm.engine.training import use_resume
from tools._command import command

GUARDS = [
    dict(type='RunRecordHook'),
    dict(type='StopSignalHook'),
    dict(type='NonFiniteGuardHook'),
]


class At(Hook):
    """Does something once, in an iteration or a validation."""

    def __init__(self, action, iteration=None, validation=False):
        self.action = action
        self.iteration = iteration
        self.validation = validation

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if runner.iter + 1 == self.iteration:
            self.action(data_batch)

    def before_val(self, runner):
        if self.validation:
            self.validation = False
            self.action(None)


def send(signum):
    return lambda batch: os.kill(os.getpid(), signum)


# Two epochs of three batches, or six iterations; validation after three.
@pytest.mark.parametrize('by_epoch', [True, False])
@pytest.mark.parametrize(
    ('when', 'done'),
    [
        (dict(iteration=2), 2),
        (dict(iteration=3), 3),
        (dict(validation=True), 3),
        (dict(iteration=5), 5),
    ],
    ids=str,
)
def test_a_signal_saves_what_a_resumed_run_needs(
    tmp_path, by_epoch, when, done
):
    seed = dict(randomness=dict(seed=3))
    torch.manual_seed(0)
    straight = run_line(
        tmp_path / 'straight', by_epoch, custom_hooks=GUARDS, **seed
    )
    before = signal.getsignal(signal.SIGTERM)
    torch.manual_seed(0)
    with pytest.raises(RunStoppedError, match='--resume goes on') as caught:
        run_line(
            tmp_path / 'stopped',
            by_epoch,
            custom_hooks=[*GUARDS, At(send(signal.SIGTERM), **when)],
            **seed,
        )
    assert caught.value.exit_code == 143
    assert f'after iteration {done};' in str(caught.value)
    assert signal.getsignal(signal.SIGTERM) is before
    path = find_whole_checkpoint(tmp_path / 'stopped')
    assert path.name == 'interrupted.pth'
    resumed = run_line(
        tmp_path / 'stopped',
        by_epoch,
        custom_hooks=GUARDS,
        resume=True,
        load_from=str(path),
        **seed,
    )
    assert resumed.iter == straight.iter == 6
    assert resumed.model.losses == straight.model.losses[done:]
    names = {p.name for p in (tmp_path / 'stopped').glob('*.pth')}
    assert f'{"epoch_2" if by_epoch else "iter_6"}.pth' in names


def test_a_resumed_epoch_has_its_other_batches_with_workers(tmp_path):
    """Workers draw their own noise: the number of batches is compared."""
    settings = dict(num_workers=1, custom_hooks=GUARDS)
    with pytest.raises(RunStoppedError):
        run_line(
            tmp_path,
            True,
            num_workers=1,
            custom_hooks=[*GUARDS, At(send(signal.SIGTERM), iteration=2)],
        )
    path = str(tmp_path / 'interrupted.pth')
    resumed = run_line(tmp_path, True, resume=True, load_from=path, **settings)
    assert len(resumed.model.losses) == 4


ENDING = """
import signal, sys
from pathlib import Path
from line import run_line
from test_long_runs import GUARDS, At, send
hooks = [*GUARDS, At(send(signal.SIGTERM), iteration=int(sys.argv[2]))]
by_epoch = sys.argv[1] == 'True'
run_line(Path('run'), by_epoch, num_workers=1, custom_hooks=hooks)
"""


@pytest.mark.parametrize(('by_epoch', 'iteration'), [(True, 99), (False, 2)])
def test_the_process_ends_with_its_workers(tmp_path, by_epoch, iteration):
    """Persistent workers and endless loaders live until the process ends."""
    folders = Path(__file__).parents[:3]
    done = subprocess.run(
        [
            sys.executable,
            '-c',
            ENDING,
            str(by_epoch),
            str(iteration),
        ],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=':'.join(map(str, folders))),
        capture_output=True,
        text=True,
        timeout=120,
    )
    stopped = 'RunStoppedError: stopped by SIGTERM' in done.stderr
    assert stopped is (iteration == 2), done.stderr[-2000:]
    assert done.returncode == int(stopped)


def test_checkpoints_of_another_folder_are_found(tmp_path):
    run_line(
        tmp_path / 'run',
        True,
        default_hooks=safe_hook(out_dir=str(tmp_path / 'elsewhere')),
    )
    path = find_whole_checkpoint(tmp_path / 'run')
    assert path.name == 'epoch_2.pth'
    assert path.is_relative_to(tmp_path / 'elsewhere')
    (tmp_path / 'run' / 'last_checkpoint').write_text('')
    assert find_whole_checkpoint(tmp_path / 'run') is None
    (path.parent / 'epoch_3-0123abcd.pth').write_bytes(path.read_bytes())
    (tmp_path / 'run' / 'last_checkpoint').write_text(str(path))
    assert find_whole_checkpoint(tmp_path / 'run').name == 'epoch_2.pth'


def test_only_a_second_interrupt_ends_at_once(tmp_path):
    def twice(signum):
        return lambda batch: [send(signum)(batch) for _ in range(2)]

    for signum, error in (
        (signal.SIGTERM, RunStoppedError),
        (signal.SIGINT, KeyboardInterrupt),
    ):
        with pytest.raises(error):
            run_line(
                tmp_path / signum.name,
                True,
                custom_hooks=[*GUARDS, At(twice(signum), iteration=2)],
            )
    assert not (tmp_path / 'SIGINT' / 'interrupted.pth').exists()


def test_the_exit_code_is_that_of_shells(capfd):
    with pytest.raises(SystemExit) as caught, command('train.py'):
        raise RunStoppedError('stopped', signal.SIGINT)
    assert caught.value.code == 130
    assert capfd.readouterr().err == 'train.py: stopped\n'


class Normalised(Line):
    """`Line` with running means, that NaN would spoil."""

    def __init__(self, spoil_gradient=False):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.spoil_gradient = spoil_gradient

    def forward(self, x, mode='tensor'):
        y = self.norm(self.backbone(torch.stack(x)))
        if mode != 'loss':
            return [y]
        loss = y.square().mean()
        if self.spoil_gradient:
            # Its value is 0, its slope infinite.
            loss = loss + (0 * y.sum()).abs().sqrt()
        return dict(loss=loss)


def fill_with_nan(batch):
    batch['x'] = [torch.full_like(x, float('nan')) for x in batch['x']]


def test_nan_stops_the_run_before_it_reaches_the_weights(tmp_path):
    weights = []
    model = Normalised()

    def copy(batch):
        state = model.state_dict()
        weights.append({key: value.clone() for key, value in state.items()})

    keep = At(copy, iteration=4)
    with pytest.raises(RunStoppedError) as caught:
        run_line(
            tmp_path,
            True,
            drop_last=True,
            model=model,
            custom_hooks=[keep, At(fill_with_nan, iteration=4), *GUARDS],
        )
    text = str(caught.value)
    assert caught.value.exit_code == 1
    assert 'gradient of iteration 4 is not finite: loss nan;' in text
    assert 'the first output that is not finite is backbone' in text
    path = tmp_path / 'before_non_finite.pth'
    assert str(path) in text
    saved = torch.load(path, weights_only=False)
    assert saved['meta']['iter'] == 3
    for key, value in weights[0].items():
        assert torch.equal(saved['state_dict'][key], value), key
    assert find_whole_checkpoint(tmp_path) == path


def test_a_gradient_is_named_where_the_loss_is_finite(tmp_path):
    with pytest.raises(RunStoppedError, match=r'the gradient of norm\.bias'):
        run_line(
            tmp_path,
            True,
            drop_last=True,
            model=Normalised(spoil_gradient=True),
            custom_hooks=GUARDS,
        )


def test_spoiled_weights_are_not_saved(tmp_path):
    model = Normalised()

    def spoil(batch):
        model.norm.weight.data.fill_(float('inf'))

    with pytest.raises(RunStoppedError, match='go on from an earlier'):
        run_line(
            tmp_path,
            True,
            drop_last=True,
            model=model,
            custom_hooks=[*GUARDS, At(spoil, iteration=3)],
        )
    assert find_whole_checkpoint(tmp_path).name == 'epoch_1.pth'


def safe_hook(**settings):
    return dict(
        checkpoint=dict(type='SafeCheckpointHook', interval=1, **settings)
    )


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    """A limit on file sizes fails in the middle of a file, as a disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill(batch):
        size = (tmp_path / 'epoch_1.pth').stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limits[1]))

    try:
        with pytest.raises(CheckpointError, match=r'epoch_2\.pth'):
            run_line(
                tmp_path,
                True,
                default_hooks=dict(safe_hook(max_keep_ckpts=1), logger=None),
                custom_hooks=[*GUARDS, At(fill, iteration=6)],
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    assert find_whole_checkpoint(tmp_path).name == 'epoch_1.pth'
    assert [p.name for p in tmp_path.glob('*epoch*')] == ['epoch_1.pth']


def test_old_checkpoints_go_when_new_ones_are_there(tmp_path):
    run_line(
        tmp_path,
        True,
        train_cfg=dict(by_epoch=True, max_epochs=4),
        default_hooks=safe_hook(max_keep_ckpts=2, save_best='a', rule='less'),
    )
    names = sorted(p.name for p in tmp_path.glob('*.pth'))
    assert names == ['best_a_epoch_1.pth', 'epoch_3.pth', 'epoch_4.pth']


def test_resume_skips_what_a_kill_cut_off(tmp_path):
    run_line(tmp_path, True)
    whole, cut = tmp_path / 'epoch_1.pth', tmp_path / 'epoch_2.pth'
    cut.write_bytes(cut.read_bytes()[:-100])
    os.utime(cut)
    best = tmp_path / 'best_a_epoch_2.pth'
    best.write_bytes(whole.read_bytes())
    cfg = Config(dict(work_dir=str(tmp_path)))
    use_resume(cfg, 'auto')
    assert cfg.resume
    assert cfg.load_from == str(whole)
    whole.unlink()
    use_resume(cfg, 'auto')
    assert cfg.resume is False
    assert cfg.load_from is None


def test_space_and_rights_are_known_at_the_start(tmp_path, monkeypatch):
    (tmp_path / 'file').touch()
    folder = tmp_path / 'file' / 'below'
    with pytest.raises(LaunchError, match='can not be written to'):
        saving.check_space(folder, Line(), True)
    usage = saving.shutil.disk_usage(tmp_path)
    # Eight trained numbers of four bytes with two more each, eight frozen.
    need = 2 * (16 * 4 + 8 * 4 * 2)
    for free, fits in ((need, True), (need - 1, False)):
        monkeypatch.setattr(
            saving.shutil,
            'disk_usage',
            lambda _, free=free: usage._replace(free=free),
        )
        if fits:
            saving.check_space(tmp_path, Line(), True)
        else:
            with pytest.raises(LaunchError, match='MiB free, two'):
                saving.check_space(tmp_path, Line(), True)
    assert not list(tmp_path.glob('.probe*'))


class Pooled(Line):
    """`Line` with a branch that pools the map to one value per channel."""

    def __init__(self, norm):
        super().__init__()
        self.branch = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            ConvModule(1, 8, 1, norm_cfg=norm),
        )

    def forward(self, x, mode='tensor'):
        y = self.branch(torch.stack(x).reshape(-1, 1, 1, 1))
        return dict(loss=y.square().mean()) if mode == 'loss' else [y]


BATCH_NORM = dict(type='BN')


@pytest.mark.parametrize(
    ('batch', 'drop_last', 'norm', 'sentence'),
    [
        (1, False, BATCH_NORM, 'train_dataloader.batch_size is 1, and branch'),
        (2, False, BATCH_NORM, 'last batch of each epoch has one image, and'),
        (2, True, BATCH_NORM, None),
        (1, False, dict(type='GN', num_groups=2), None),
    ],
    ids=str,
)
def test_one_image_under_a_pooled_batch_norm_is_refused(
    tmp_path, batch, drop_last, norm, sentence
):
    def run():
        run_line(
            tmp_path,
            True,
            model=Pooled(norm),
            custom_hooks=GUARDS,
            batch_size=batch,
            drop_last=drop_last,
        )

    if sentence is None:
        run()
        return
    with pytest.raises(LaunchError, match=sentence):
        run()


def test_upernet_has_such_a_branch():
    cfg = shrink(Config.fromfile(find_config(SEG)))
    assert (
        _pooled_batch_norm(build_model(cfg), 1) == 'decode_head.psp_modules.0'
    )

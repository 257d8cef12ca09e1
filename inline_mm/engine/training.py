"""Options of ``tools/train.py`` that change the config, and its header."""

import os

from mmengine.config import Config
from mmengine.device import get_device
from mmengine.model import is_model_wrapper
from mmengine.runner import Runner, find_latest_checkpoint

from ..checkpoint import check_checkpoint
from .launch import LaunchError


def use_amp(cfg: Config) -> None:
    """Switches mixed precision on.

    Args:
        cfg (Config): the config to change.

    Raises:
        LaunchError: without a device for it, or with an optimizer wrapper
            other than the plain one.
    """
    if get_device() in ('cpu', 'mps'):
        raise LaunchError(
            f'--amp needs a GPU, as AmpOptimWrapper of mmengine does; the '
            f'device seen is {get_device()}'
        )
    wrapper = cfg.optim_wrapper.get('type', 'OptimWrapper')
    if wrapper not in ('OptimWrapper', 'AmpOptimWrapper'):
        raise LaunchError(
            f"--amp works with optim_wrapper of type 'OptimWrapper', the "
            f'config has {wrapper!r}'
        )
    cfg.optim_wrapper.type = 'AmpOptimWrapper'
    cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')


def use_auto_scale_lr(cfg: Config) -> None:
    """Scales the learning rate by the number of images per step.

    Args:
        cfg (Config): the config to change.

    Raises:
        LaunchError: if the config doesn't say what its rate is meant for.
    """
    if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
        raise LaunchError(
            '--auto-scale-lr needs auto_scale_lr.base_batch_size in the '
            'config, the images per step that its learning rate is meant for'
        )
    cfg.auto_scale_lr.enable = True


def use_resume(cfg: Config, resume: str) -> None:
    """Resumes an interrupted run.

    Args:
        cfg (Config): the config to change.
        resume (str): 'auto' for the newest checkpoint of the work folder, or
            the path of a checkpoint.

    Raises:
        LaunchError: if the path is not a file.
        CheckpointError: if it can't be loaded.
    """
    if resume != 'auto' and not os.path.isfile(resume):
        raise LaunchError(
            f'--resume {resume}: no such file; without a value it takes the '
            f'newest checkpoint in {cfg.work_dir}'
        )
    if resume != 'auto':
        check_checkpoint(resume)
    cfg.resume = True
    cfg.load_from = None if resume == 'auto' else resume


def skip_initialisation(runner: Runner) -> None:
    """Spares a resumed run the file its backbone began from.

    The checkpoint has all weights, and that file may be gone. Without a
    checkpoint to go on from, the run begins as usual, and says so.

    Args:
        runner (Runner): the runner of a run with ``cfg.resume``.
    """
    cfg = runner.cfg
    if not cfg.load_from and find_latest_checkpoint(cfg.work_dir) is None:
        runner.logger.warning(
            f'--resume: {cfg.work_dir} holds no checkpoint to go on from; '
            'the run begins at iteration 0'
        )
        return
    model = runner.model.module if is_model_wrapper(runner.model) else None
    backbone = getattr(model or runner.model, 'backbone', None)
    if backbone is not None:
        backbone.init_cfg = None


def log_batch_size(runner: Runner) -> None:
    """Says how the run's batch and learning rate relate to the recipe's.

    Args:
        runner (Runner): the runner that is about to train.
    """
    cfg = runner.cfg
    batch = cfg.train_dataloader.get('batch_size')
    lr = cfg.optim_wrapper.get('optimizer', {}).get('lr')
    scaling = cfg.get('auto_scale_lr', {})
    base = scaling.get('base_batch_size')
    if None in (batch, lr, base):
        return
    images = batch * runner.world_size
    note = f'learning rate {lr:g}, meant for {base} images'
    if scaling.get('enable', False):
        note += f', scaled to {lr * images / base:g}'
    elif images != base:
        note += ', not scaled (--auto-scale-lr would)'
    runner.logger.info(
        f'{images} images per step, {batch} in each of {runner.world_size} '
        f'process(es); {note}'
    )

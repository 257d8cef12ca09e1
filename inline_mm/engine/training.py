"""Options of ``tools/train.py`` that change the config."""

import os

from mmengine.config import Config
from mmengine.device import get_device
from mmengine.runner import Runner

from ..checkpoint import check_checkpoint
from ..errors import LaunchError
from .header import bare_model
from .saving import find_whole_checkpoint


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
        resume (str): 'auto' for the newest whole checkpoint of the work
            folder, or the path of a checkpoint.

    Raises:
        LaunchError: if the path is not a file.
        CheckpointError: if it can't be loaded.
    """
    if resume != 'auto' and not os.path.isfile(resume):
        raise LaunchError(
            f'--resume {resume}: no such file; without a value it takes the '
            f'newest checkpoint in {cfg.work_dir}'
        )
    if resume == 'auto':
        newest = find_whole_checkpoint(cfg.work_dir)
        resume = None if newest is None else str(newest)
    else:
        check_checkpoint(resume)
    # Without a file mmengine would look itself, and take a broken one.
    cfg.resume = resume is not None
    cfg.load_from = resume


def skip_initialisation(runner: Runner) -> None:
    """Spares a resumed run the file its backbone began from.

    The checkpoint has all weights, and that file may be gone. Without a
    checkpoint to go on from, the run begins as usual, and says so.

    Args:
        runner (Runner): the runner of a run that :func:`use_resume` set up.
    """
    if not runner.cfg.resume:
        runner.logger.warning(
            f'--resume: {runner.work_dir} has no checkpoint to go on from; '
            'the run begins at iteration 0'
        )
        return
    backbone = getattr(bare_model(runner), 'backbone', None)
    if backbone is not None:
        backbone.init_cfg = None

"""What ``tools/train.py`` and ``tools/test.py`` share.

The launchers serve mmdet, mmsegmentation and mmpretrain alike: the config's
``default_scope`` says which, and mmengine's runner imports that one alone.
"""

import atexit
import difflib
import logging
import os
import traceback
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import mmengine.logging
import torch
from mmengine.config import Config, DictAction
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from ..errors import LaunchError
from .config_keys import check_keys
from .guard import NonFiniteGuardHook
from .hooks import RunRecordHook
from .saving import SafeCheckpointHook
from .stopping import StopSignalHook

HOSTS = ('mmdet', 'mmseg', 'mmpretrain')
PACKAGE = Path(__file__).resolve().parents[1]


def _keep_debug_lines_quiet() -> None:
    """Takes lines of level DEBUG out of what has no logger.

    mmengine prints those whatever their level; the hosts' "Could not import
    OneDL" is such a line, printed when they are imported.
    """
    print_always = mmengine.logging.print_log

    @wraps(print_always)
    def print_log(msg, logger=None, level=logging.INFO):
        if logger is not None or level >= logging.INFO:
            print_always(msg, logger, level)

    mmengine.logging.print_log = print_log


_keep_debug_lines_quiet()


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the package.

    Returns:
        dict[str, Path]: path by name, the file name without '.py'.
    """
    # An installed package carries them; a clone has them beside the package.
    for root in (PACKAGE / '.mim' / 'configs', PACKAGE.parent / 'configs'):
        if root.is_dir():
            return {
                path.stem: path
                for path in sorted(root.glob('mm*/*/*.py'))
                if path.parent.name != '_base_'
            }
    return {}


def find_config(config: str) -> str:
    """Finds a config by path or, failing that, by name among those shipped.

    Args:
        config (str): path of a file, or name of a shipped config.

    Returns:
        str: path of the file.

    Raises:
        LaunchError: if there is neither.
    """
    if os.path.isfile(config):
        return config
    shipped = shipped_configs()
    name = Path(config).name.removesuffix('.py')
    if name in shipped:
        print_log(
            f'{config} is not a file here; using {shipped[name]}',
            logger='current',
        )
        return str(shipped[name])
    near = difflib.get_close_matches(name, shipped, n=3)
    hint = f'; near names: {", ".join(near)}' if near else ''
    raise LaunchError(
        f'config {config!r} is neither a file nor the name of a config that '
        f'comes with inline_mm{hint}'
    )


def read_config(
    config: str, options: dict | list[str] | None = None
) -> Config:
    """Reads a config of one of the hosts.

    Args:
        config (str): path of a file, or name of a shipped config.
        options (dict | list[str] | None): settings that override the file's,
            by their dotted keys, or as the KEY=VALUE of a command line.
            Defaults to None.

    Returns:
        Config: the config.

    Raises:
        LaunchError: if there is no such config, it has keys of an older
            version or misspelt ones, it is none of a host, or the host is
            not installed.
    """
    try:
        cfg = Config.fromfile(find_config(config))
    except (ModuleNotFoundError, OSError, SyntaxError) as error:
        raise LaunchError(f'{config} can not be read: {error}') from None
    if isinstance(options, list):
        values = SimpleNamespace(options=None)
        DictAction([], 'options')(None, values, options)
        options = values.options
    try:
        cfg.merge_from_dict(options or {})
    except (KeyError, TypeError) as error:
        raise LaunchError(
            f'--cfg-options do not fit {config}: {error.args[0]}'
        ) from None
    check_keys(cfg, options)
    scope = cfg.get('default_scope')
    if scope not in HOSTS:
        raise LaunchError(
            f'{config} has default_scope {scope!r}, expected one of '
            f'{", ".join(HOSTS)}'
        )
    if find_spec(scope) is None:
        raise LaunchError(
            f'{config} needs {scope}, which is not installed; `make env` '
            'installs it'
        )
    try:
        import_module(scope)
    except AssertionError as error:  # it doesn't go with this mmcv
        raise LaunchError(
            f'{scope} refuses what it was installed with: {error}'
        ) from None
    return cfg


def load_config(args) -> Config:
    """Reads the config and applies the arguments of both launchers.

    Args:
        args (argparse.Namespace): ``config`` and what
            ``add_common_arguments`` of ``tools/_command.py`` defines.

    Returns:
        Config: the config, with ``launcher`` and ``work_dir`` set.

    Raises:
        LaunchError: if the config can't be used, or several processes can't
            be started.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = os.path.join('work_dirs', Path(cfg.filename).stem)
    if os.path.exists(cfg.work_dir) and not os.path.isdir(cfg.work_dir):
        raise LaunchError(f'--work-dir {cfg.work_dir} is not a folder')
    if args.launcher != 'none' and get_device() == 'cpu':
        _use_cpu_processes(cfg)
    return cfg


def _use_cpu_processes(cfg: Config) -> None:
    """Lets several processes without accelerators work together.

    mmengine's launcher presumes a GPU, its wrapper a device id, and
    synchronised batch normalisation has no CPU kernel.
    """
    if cfg.launcher != 'pytorch':
        raise LaunchError(
            f'--launcher {cfg.launcher} needs GPUs and none is seen; without '
            'them several processes work under torchrun alone '
            '(--launcher pytorch)'
        )
    torch.distributed.init_process_group('gloo')
    # Left to the interpreter's end, gloo's threads can abort the process.
    atexit.register(torch.distributed.destroy_process_group)
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    wrapper.update(cfg.get('model_wrapper_cfg') or {}, device_ids=None)
    cfg.model_wrapper_cfg = wrapper
    if _replace_sync_bn(cfg.model):
        print_log(
            'No GPU: each process normalises its own batch (SyncBN -> BN).',
            logger='current',
        )


def _replace_sync_bn(node) -> bool:
    """Replaces SyncBN by BN in a model's config; tells if there was any."""
    children = node.values() if isinstance(node, dict) else node
    found = [
        _replace_sync_bn(child)
        for child in children
        if isinstance(child, (dict, list, tuple))
    ]
    if isinstance(node, dict) and node.get('type') == 'SyncBN':
        node['type'] = 'BN'
        return True
    return any(found)


def build_runner(cfg: Config) -> Runner:
    """Builds the runner that the config asks for, mmengine's by default.

    Args:
        cfg (Config): the whole config.

    Returns:
        Runner: the runner, ready to train or test, with the hooks that guard
        and record every run.

    Raises:
        LaunchError: if the config names or sets something that isn't there.
    """
    try:
        if 'runner_type' in cfg:
            runner = RUNNERS.build(cfg)
        else:
            runner = Runner.from_cfg(cfg)
    except (KeyError, TypeError, ValueError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise LaunchError(
            f'the config can not be built: {error.args[0]} '
            f'({place.filename}, line {place.lineno})'
        ) from error
    # Not through the config: its dumped copy must suit the hosts' own tools.
    SafeCheckpointHook.replace(runner)
    for hook in (RunRecordHook, NonFiniteGuardHook, StopSignalHook):
        if not any(isinstance(other, hook) for other in runner.hooks):
            runner.register_hook(hook())
    return runner

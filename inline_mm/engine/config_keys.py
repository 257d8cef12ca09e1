"""Top-level keys of a config that nothing reads."""

import ast
import difflib
import inspect
import logging
import re
from pathlib import Path

from mmengine.config import Config
from mmengine.fileio import load
from mmengine.logging import print_log
from mmengine.runner import Runner

from ..errors import LaunchError

# What mmengine's runner is given, and what it and the hosts' tools look up.
READ = {
    *inspect.signature(Runner.__init__).parameters,
    *('activation_checkpointing', 'compile', 'custom_imports'),
    *('efficient_conv_bn_eval', 'find_unused_parameters'),
    *('init_weights_for_test_or_val', 'model_wrapper_cfg', 'runner_type'),
    *('strategy', 'sync_bn', 'tta_model', 'tta_pipeline', 'vis_backends'),
} - {'self', 'cfg'}
# The 3.x way to say what keys of 2.x said, by what is read now.
OLD = {
    'optimizer': (
        'optim_wrapper',
        "optim_wrapper=dict(type='OptimWrapper', optimizer=dict(...))",
    ),
    'optimizer_config': ('optim_wrapper', 'optim_wrapper.clip_grad'),
    'fp16': ('optim_wrapper', "optim_wrapper.type='AmpOptimWrapper'"),
    'lr_config': ('param_scheduler', 'param_scheduler=[dict(type=...), ...]'),
    'momentum_config': (
        'param_scheduler',
        'param_scheduler=[dict(type=...), ...]',
    ),
    'data': (
        'train_dataloader',
        'train_dataloader, val_dataloader and test_dataloader',
    ),
    'runner': (
        'train_cfg',
        "train_cfg=dict(type='EpochBasedTrainLoop', max_epochs=...)",
    ),
    'total_epochs': ('train_cfg', 'train_cfg.max_epochs'),
    'total_iters': ('train_cfg', 'train_cfg.max_iters'),
    'workflow': ('train_cfg', 'train_cfg and val_cfg'),
    'evaluation': (
        'val_evaluator',
        'val_evaluator, test_evaluator and train_cfg.val_interval',
    ),
    'checkpoint_config': ('default_hooks', 'default_hooks.checkpoint'),
    'log_config': ('default_hooks', 'default_hooks.logger and vis_backends'),
    'resume_from': ('resume', 'load_from with resume=True'),
    'auto_resume': ('resume', 'resume=True'),
    'seed': ('randomness', 'randomness.seed'),
    'deterministic': ('randomness', 'randomness.deterministic'),
    'dist_params': ('env_cfg', 'env_cfg.dist_cfg'),
    'cudnn_benchmark': ('env_cfg', 'env_cfg.cudnn_benchmark'),
    'opencv_num_threads': ('env_cfg', 'env_cfg.mp_cfg.opencv_num_threads'),
    'mp_start_method': ('env_cfg', 'env_cfg.mp_cfg.mp_start_method'),
    'gpu_ids': ('launcher', 'the variable CUDA_VISIBLE_DEVICES'),
}
# Not 'tta_pipeline', which is like the variable 'test_pipeline' of all hosts.
TARGETS = sorted(READ - {'tta_pipeline'})
CLOSE = 0.85  # likeness of a misspelt key, by difflib


def check_keys(cfg: Config, options: dict | None = None) -> None:
    """Stops at keys of older versions and misspelt ones; remarks on others.

    A variable of the config is no such key if its file, or one that inherits
    it, uses it. mmengine evaluates each file by itself, so that a variable
    of a base can't be changed from below: there, too, nothing reads it.

    Args:
        cfg (Config): a config that was read from a file.
        options (dict | None): what was merged into it, by dotted keys.
            Defaults to None.

    Raises:
        LaunchError: if a key is of an older version or misspelt.
    """
    layers = _layers(cfg, options or {})
    unread = []
    for key in cfg:
        where = [i for i, (names, _) in enumerate(layers) if key in names]
        if key in READ or not where:
            continue
        names, _ = layers[where[-1]]
        if any(key in used for _, used in layers[where[-1] :]):
            continue
        # A dumped config has what its files used already; it is whole.
        if key in OLD and OLD[key][0] not in names:
            raise LaunchError(
                f'{cfg.filename} has the key {key!r} of mmdet 2.x and mmseg '
                f'0.x, which nothing reads any more; write {OLD[key][1]}'
            )
        if key in OLD or _occurs(cfg[key], cfg):
            continue
        near = difflib.get_close_matches(key.lower(), TARGETS, 1, CLOSE)
        if near:
            raise LaunchError(
                f'{cfg.filename} has the key {key!r}, which nothing reads; '
                f'write {near[0]!r} if that is meant, or give the variable '
                'another name'
            )
        unread.append(repr(key))
    if unread:
        print_log(
            f'{cfg.filename}: nothing reads {", ".join(unread)} (a variable '
            'of a base config can not be changed from below; set what it '
            'was used for)',
            logger='current',
            level=logging.WARNING,
        )


def _layers(cfg: Config, options: dict) -> list[tuple[set, set]]:
    """Names set and names used, file by file from the lowest base on."""
    # Each file's path stands before it where files inherit.
    parts = re.split(r'^(/.*\.(?:py|json|ya?ml))$', cfg.text, flags=re.M)
    layers = [_names(parts[0])]
    for path, text in zip(parts[1::2], parts[2::2], strict=True):
        python = Path(path).suffix == '.py'
        layers.append(_names(text) if python else ({*load(path)}, set()))
    layers.append(({key.split('.')[0] for key in options}, set()))
    return layers


def _names(text: str) -> tuple[set, set]:
    names = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)]
    return (
        {n.id for n in names if isinstance(n.ctx, ast.Store)},
        {n.id for n in names if isinstance(n.ctx, ast.Load)}
        | set(re.findall(r'_base_\.(\w+)', text)),
    )


def _occurs(value, cfg: Config) -> bool:
    """Whether a value is part of what is read."""

    def holds(node) -> bool:
        if node == value:
            return True
        if isinstance(node, dict):
            return any(map(holds, node.values()))
        return isinstance(node, (list, tuple)) and any(map(holds, node))

    return any(holds(cfg[key]) for key in READ if key in cfg)

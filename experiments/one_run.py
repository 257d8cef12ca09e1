"""One run of the experiment: train, test, record; in a process of its own."""

import argparse
import json
import os
import shutil
import sys
import threading
from copy import deepcopy
from pathlib import Path
from time import perf_counter

import torch
from mmengine.config import Config
from mmengine.utils import import_modules_from_strings

from benchmarks.machine import hash_code
from inline_mm import data_check
from inline_mm.compare import read_record
from inline_mm.complexity import count as flops
from inline_mm.engine import launch, testing
from inline_mm.engine.facts import hash_config
from inline_mm.results import record
from inline_mm.results.observing import ResultHook
from tools._command import command

from .shapes import read_shapes

# From the folder of the experiment, as the configs have it.
DATA = 'data/shapes'
RESULT = 'result.json'


def load_config(
    config: str, seed: int, options: dict, iterations: int | None
) -> Config:
    """Reads a config of the experiment.

    Args:
        config (str): path of a file.
        seed (int): of weights and order.
        options (dict): changes of the config, by dotted key.
        iterations (int | None): instead of the config's, which sees the
            decay of the learning rate shrink with them.

    Returns:
        Config: the config.
    """
    options = {'randomness': dict(seed=seed), **options}
    cfg = launch.read_config(config, options)
    import_modules_from_strings(**cfg.custom_imports)
    if iterations is not None:
        warmup, decay = cfg.param_scheduler
        share = iterations / cfg.train_cfg.max_iters
        warmup.end = decay.begin = max(1, int(warmup.end * share))
        decay.end = iterations
        cfg.default_hooks.checkpoint.interval = iterations
        cfg.train_cfg.update(max_iters=iterations, val_interval=iterations + 1)
    return cfg


def is_done(folder: Path, cfg: Config, data: Path) -> bool:
    """Whether a finished run is that of a config.

    Args:
        folder (Path): work folder of the run, with its record.
        cfg (Config): its config.
        data (Path): folder of the shapes.

    Returns:
        bool: True if its record is of the same recipe, seed, shapes and
        code of the backbones.
    """
    found = read_record(folder / RESULT)
    return (
        found['config']['sha256'] == hash_config(cfg)
        and found['training']['seed'] == cfg.randomness.seed
        and found['shapes'] == read_shapes(data)
        and found.get('code') == hash_code()
    )


def execute(cfg: Config, folder: Path) -> None:
    """Trains and tests, and writes the record last.

    Args:
        cfg (Config): the config, its paths from the current folder.
        folder (Path): work folder; what a stopped run left is deleted.
    """
    shutil.rmtree(folder, ignore_errors=True)
    cfg.launcher, cfg.work_dir = 'none', str(folder)
    recipe = deepcopy(cfg)
    runner = launch.build_runner(deepcopy(cfg))
    data_check.check_before_run(runner.cfg, 'train')
    start = perf_counter()
    runner.train()
    seconds = perf_counter() - start
    weights = folder / f'iter_{cfg.train_cfg.max_iters}.pth'
    testing.use_checkpoint(cfg, str(weights))
    # mmengine keeps visualizers and loggers by this name.
    cfg.experiment_name = f'{runner.experiment_name}_test'
    cfg.work_dir = str(folder / 'test')
    runner = launch.build_runner(cfg)
    for hook in (testing.CompleteWeightsHook(), ResultHook()):
        runner.register_hook(hook)
    metrics = runner.test()
    found = record.describe_test(runner, metrics, recipe, str(weights), False)
    shapes = read_shapes(Path(DATA))
    counted = flops.count(recipe, (shapes['size'], shapes['size']))
    found['model'].update(
        {key: counted[key] for key in ('params', 'flops', 'input_shape')},
        backbone_part=counted['parts']['backbone'],
    )
    found.update(shapes=shapes, seconds=seconds, code=hash_code())
    record.write(folder / RESULT, found)


def main() -> None:
    """Entry of the process, started in the folder that holds the data."""
    parser = argparse.ArgumentParser()
    parser.add_argument('config')
    parser.add_argument('folder', type=Path)
    parser.add_argument('--seed', type=int, required=True)
    parser.add_argument('--iterations', type=int)
    parser.add_argument('--options', type=json.loads, default={})
    args = parser.parse_args()
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with command('experiment'):
        cfg = load_config(
            args.config, args.seed, args.options, args.iterations
        )
        execute(cfg, args.folder)


def _end_with_parent() -> None:
    """Ends when the process that holds the other end of stdin does.

    Else a killed experiment's runs would go on beside those of the next.
    """
    os.read(sys.stdin.fileno(), 1)  # without a lock, unlike its object
    os._exit(1)


if __name__ == '__main__':
    main()

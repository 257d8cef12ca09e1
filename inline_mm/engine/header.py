"""What a run says of itself before its first iteration."""

import torch
from mmengine.dist import get_world_size
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..data_check import count_images, largest_train_shape
from ..errors import LaunchError


def bare_model(runner: Runner) -> nn.Module:
    """A runner's model without what distributes it.

    Args:
        runner (Runner): the runner.

    Returns:
        nn.Module: the host's model.
    """
    model = runner.model
    return model.module if is_model_wrapper(model) else model


def optim_wrappers(runner: Runner) -> list[OptimWrapper]:
    """A runner's wrapped optimizers; OptimWrapperDict holds several.

    Args:
        runner (Runner): the runner.

    Returns:
        list[OptimWrapper]: one or more.
    """
    wrapper = runner.optim_wrapper
    return list(wrapper.values()) if hasattr(wrapper, 'values') else [wrapper]


def describe_run(runner: Runner, initialisation: str) -> dict[str, str]:
    """The header of a training run, line by line.

    Args:
        runner (Runner): the runner that is about to train.
        initialisation (str): how its backbone begins, in words.

    Returns:
        dict[str, str]: what each line is about, and its text.
    """
    model = bare_model(runner)
    counts = {True: 0, False: 0}
    for parameter in model.parameters():
        counts[parameter.requires_grad] += parameter.numel()
    lines = dict(
        initialisation=initialisation,
        parameters=f'{counts[True]:,} to train, {counts[False]:,} frozen',
        batch=_describe_batch(runner),
        images='; '.join(
            str(c) for c in count_images(runner.train_dataloader.dataset)
        ),
        devices=_describe_devices(),
        precision=_describe_precision(runner),
    )
    shape = largest_train_shape(runner.cfg) if 'model' in runner.cfg else None
    if shape is not None:
        lines['largest batch'] = f'{shape[0]} x {shape[1]} pixels (H x W)'
    return lines


def batch_of(runner: Runner) -> dict[str, int | None]:
    """Images of a step, for the log and the checkpoints.

    Args:
        runner (Runner): the runner.

    Returns:
        dict: 'per_process' (None if the loader doesn't say), 'processes',
        'accumulated' (steps of which gradients add up) and 'images'.
    """
    loader = runner.train_dataloader
    batch = loader.batch_size or getattr(
        loader.batch_sampler, 'batch_size', None
    )
    accumulated = getattr(optim_wrappers(runner)[0], '_accumulative_counts', 1)
    world = get_world_size()
    return dict(
        per_process=batch,
        processes=world,
        accumulated=accumulated,
        images=None if batch is None else batch * world * accumulated,
    )


def _describe_batch(runner: Runner) -> str:
    batch = batch_of(runner)
    rates = [w.optimizer.param_groups[0] for w in optim_wrappers(runner)]
    # Schedulers keep the rate that warm-up and decay start from.
    rate = rates[0].get('initial_lr', rates[0]['lr'])
    text = (
        f'{batch["images"]} images per step ({batch["per_process"]} in each '
        f'of {batch["processes"]} process(es)'
    )
    if batch['accumulated'] > 1:
        text += f', gradients of {batch["accumulated"]} added up'
    text += f'), learning rate {rate:g}'
    scaling = runner.cfg.get('auto_scale_lr') or {}
    base = scaling.get('base_batch_size')
    if base is None:
        return text
    if scaling.get('enable', False):
        return f'{text}, scaled from a recipe for {base} images'
    if base != batch['images']:
        return (
            f"{text}, the recipe's for {base} images: not scaled "
            '(--auto-scale-lr would)'
        )
    return f'{text}, as in the recipe'


def _describe_devices() -> str:
    world = get_world_size()
    if not torch.cuda.is_available():
        return f'{world} process(es), CPU, {torch.get_num_threads()} threads'
    return f'{world} process(es), {torch.cuda.get_device_name()}'


def _describe_precision(runner: Runner) -> str:
    wrapper = optim_wrappers(runner)[0]
    if not hasattr(wrapper, 'loss_scaler'):
        return 'float32'
    dtype = getattr(wrapper, 'cast_dtype', None) or 'the default type'
    return f'mixed, {dtype}'


def check_batch_norm(runner: Runner) -> None:
    """Refuses a batch whose pooled maps batch normalisation can't handle.

    A branch that pools the map to one value per channel leaves BatchNorm one
    value in a batch of one image: torch raises an error in the first
    iteration, or in the last one of an epoch whose last batch has one image.

    Args:
        runner (Runner): the runner that is about to train.

    Raises:
        LaunchError: if that would happen.
    """
    batch = batch_of(runner)
    loader = runner.train_dataloader
    alone = batch['per_process'] == 1
    last = None
    if not alone and batch['per_process'] and not loader.drop_last:
        sampler = getattr(loader.batch_sampler, 'sampler', loader.sampler)
        if not hasattr(sampler, 'skip'):  # an endless one has no last batch
            last = len(sampler) % batch['per_process'] == 1
    if not (alone or last):
        return
    name = _pooled_batch_norm(runner.model, batch['processes'])
    if name is None:
        return
    which = (
        'train_dataloader.batch_size is 1'
        if alone
        else 'the last batch of each epoch has one image'
    )
    fix = (
        'train_dataloader.batch_size=2 or more'
        if alone
        else 'train_dataloader.drop_last=True'
    )
    raise LaunchError(
        f'{which}, and {name} normalises a map that is pooled to one value '
        f'per channel, which BatchNorm can not do for one image; set {fix}'
    )


def _pooled_batch_norm(model: nn.Module, processes: int) -> str | None:
    """Name of a batch norm behind a pooling to 1 x 1, None without."""
    for name, module in model.named_modules():
        pooled = False
        if not isinstance(module, nn.Sequential):
            continue
        for child in module:
            if isinstance(child, nn.AdaptiveAvgPool2d):
                pooled = child.output_size in (1, (1, 1), [1, 1])
            elif pooled and any(
                isinstance(inner, _BatchNorm)
                and not (isinstance(inner, nn.SyncBatchNorm) and processes > 1)
                for inner in child.modules()
            ):
                return name
    return None

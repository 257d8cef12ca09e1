"""Parameters and multiply-adds of any config's model, on the CPU.

Counted: matrix products and convolutions, by torch's `FlopCounterMode`; among
them the attention's products (whatever form they are written in) and the
dynamic 3x3 convolution. One multiply-add counts as one, which is what papers
print as FLOPs. Not counted: norms, softmax, activations, pooling,
interpolation and everything element-wise.

InLine attention is counted head by head, as the paper writes it down: the
folded form that large maps are computed in has the same result from other
products.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import partial

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from ..layers import InLineAttention
from .run import default_shape, run

aten = torch.ops.aten
# Operators of torch that multiply and add and have no formula.
WITHOUT_FORMULA = {
    'addmv',
    'dot',
    'grid_sampler_2d',
    'grid_sampler_3d',
    'mv',
    '_cdist_forward',
    '_fft_c2c',
    '_fft_c2r',
    '_fft_r2c',
    '_native_multi_head_attention',
    '_thnn_fused_lstm_cell',
    'mkldnn_rnn_layer',
}


def count(cfg: Config, shape: tuple[int, int] | None = None) -> dict:
    """Counts a config's parameters and multiply-adds for one image.

    The model is built anew, without its weights, and run on the meta device,
    without memory; where its course depends on values (DINO's does), on an
    image of zeros. Neither `cfg` nor the random state is changed.

    Args:
        cfg (Config): a whole config of mmdet, mmseg or mmpretrain.
        shape (tuple[int, int] | None): height and width in pixels. Defaults
            to None: those of :func:`~.flops_run.default_shape`.

    Returns:
        dict: 'params' (int, all of the model, auxiliary heads included),
        'flops' (int, multiply-adds), 'input_shape' ([height, width]), 'parts'
        (for each part of the model, such as 'backbone', its 'params' and
        'flops'), 'uncounted' (list of str: operators that multiply and add
        and aren't in the count) and 'assumptions' (list of str, sentences).

    Raises:
        ValueError: if the model can't be built or run, with the reason.
    """
    shape = tuple(shape or default_shape(cfg))
    with _surroundings(cfg):
        model = _build(cfg).to('meta')
        try:
            try:
                counted = _measure(model, shape)
            except RuntimeError:
                # It asks for values, which the meta device doesn't have.
                counted = _measure(_build(cfg), shape)
        except Exception as error:
            raise ValueError(
                f'the model does not run on {shape[0]}x{shape[1]} pixels '
                f'without data: {type(error).__name__}: {error}'
            ) from error
    return dict(params=_size(model), input_shape=list(shape)) | counted


@contextmanager
def _surroundings(cfg: Config) -> Iterator[None]:
    """The config's scope; random state and settings as they were after."""
    with ExitStack() as stack:
        scope = cfg.get('default_scope') or 'mmengine'
        stack.enter_context(DefaultScope.overwrite_default_scope(scope))
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.no_grad())
        # One operator without a formula, instead of products. torch before
        # 2.3 has no switch: there nn.MultiheadAttention counts as nothing.
        if hasattr(torch.backends, 'mha'):
            fast = torch.backends.mha.get_fastpath_enabled()
            stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
            torch.backends.mha.set_fastpath_enabled(False)
        yield


def _build(cfg: Config) -> nn.Module:
    try:
        # Some constructors change what they are given.
        model = MODELS.build(deepcopy(cfg.model)).eval()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f'the model can not be built: {error}') from error
    for module in model.modules():
        if isinstance(module, InLineAttention):
            module.fold = False
    return model


class _Operators(TorchDispatchMode):
    """Notes which operators run that should be counted and aren't."""

    def __init__(self) -> None:
        super().__init__()
        self.uncounted = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        namespace, _, name = func._schema.name.partition('::')
        ours = namespace in ('aten', 'prim', 'prims')
        if not ours or name in WITHOUT_FORMULA:
            self.uncounted.add(name if ours else f'{namespace}.{name}')
        return func(*args, **(kwargs or {}))


def _measure(model: nn.Module, shape: tuple[int, int]) -> dict:
    """Runs the model once, counting in total and by its parts."""
    counter = FlopCounterMode(
        display=False,
        custom_mapping={
            # The form of attention that only CPUs have.
            aten._scaled_dot_product_flash_attention_for_cpu: _attention
        },
    )
    operators = _Operators()
    parts = dict(model.named_children())
    flops = Counter()
    for name, part in parts.items():
        _count_part(name, part, counter, flops)
    _note_mmcv_operators(model, operators.uncounted)
    device = next(model.parameters()).device
    images = torch.zeros(1, 3, *shape, device=device)
    with operators, counter:
        assumptions = run(model, images)
    if device.type == 'cpu':
        assumptions.append(
            'What depends on values is as random weights and an image of '
            'zeros make it.'
        )
    return dict(
        flops=counter.get_total_flops() // 2,
        parts={
            name: dict(params=_size(part), flops=flops[name] // 2)
            for name, part in parts.items()
            if _size(part)
        },
        uncounted=sorted(operators.uncounted),
        assumptions=assumptions,
    )


def _attention(
    query: torch.Size,
    key: torch.Size,
    value: torch.Size,
    *_,
    out_shape: tuple,
    attn_mask: torch.Size | None = None,
    scale: float | None = None,
) -> int:
    return sdpa_flop_count(query, key, value)


def _count_part(
    name: str, part: nn.Module, counter: FlopCounterMode, flops: Counter
) -> None:
    """Adds what the outermost calls into a part cost, under its name.

    Some models call a method of a part instead of the part itself, so every
    module in it is watched.
    """
    began = []

    def enter(*_) -> None:
        began.append(counter.get_total_flops())

    def leave(*_) -> None:
        before = began.pop()
        if not began:
            flops[name] += counter.get_total_flops() - before

    for module in part.modules():
        module.register_forward_pre_hook(enter)
        module.register_forward_hook(leave)


def _note_mmcv_operators(model: nn.Module, uncounted: set[str]) -> None:
    """mmcv's compiled operators are invisible to torch's dispatcher."""
    for module in model.modules():
        kind = type(module)
        if kind.__module__.startswith('mmcv.ops.'):
            module.register_forward_pre_hook(
                partial(_note, uncounted, f'mmcv {kind.__name__}')
            )


def _note(uncounted: set[str], name: str, *_) -> None:
    uncounted.add(name)


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())

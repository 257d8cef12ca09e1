"""Stopping a run whose numbers are no numbers any more."""

from collections.abc import Iterable

import torch
from mmengine.hooks import Hook
from mmengine.optim import AmpOptimWrapper
from mmengine.registry import HOOKS
from torch import Tensor, nn

from ..errors import RunStoppedError
from .header import bare_model, optim_wrappers
from .saving import save_state
from .stopping import any_process

STATE_FILE = 'before_non_finite.pth'


@HOOKS.register_module()
class NonFiniteGuardHook(Hook):
    """Stops a run before NaN or infinity gets into its weights.

    Gradients are looked at just before each step of the optimizer, at the
    cost of reading them once. If one isn't finite the step isn't taken: the
    weights are the last good ones and go to `before_non_finite.pth`, and the
    run ends with a sentence that names the iteration, the losses and the
    first module concerned, found by running the batch once more.

    In mixed precision with a loss scale, steps whose gradients overflow are
    part of the method and skipped by torch itself; there the losses are
    looked at.

    The launchers put it into every run; ``custom_hooks =
    [dict(type='NonFiniteGuardHook')]`` does so elsewhere.
    """

    # Before RunRecordHook counts the batch.
    priority = 'ABOVE_NORMAL'

    def __init__(self) -> None:
        self._call: tuple[tuple, dict] = ((), {})
        self._names: set[str] = set()
        self._buffers: dict[str, Tensor] = {}

    def before_train(self, runner) -> None:
        """Attaches to the optimizers, and to the model's calls."""
        # Not the loader's batch: a preprocessor may change it in place.
        model = bare_model(runner)
        model.register_forward_pre_hook(self._keep_call, with_kwargs=True)
        state = model.state_dict(keep_vars=True)
        self._names = {
            name
            for name, _ in model.named_buffers()
            if name in state  # the others are constants
        }
        for one in optim_wrappers(runner):
            one.optimizer.register_step_pre_hook(
                lambda optimizer, *_: self._check_step(runner, optimizer)
            )

    def _keep_call(self, module, args, kwargs) -> None:
        self._call = (args, kwargs)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Keeps what the forward pass may spoil."""
        self._buffers = {
            name: buffer.detach().clone()
            for name, buffer in bare_model(runner).named_buffers()
            if name in self._names
        }

    def after_train_iter(
        self, runner, batch_idx, data_batch=None, outputs=None
    ) -> None:
        """Looks at the losses where the loss is scaled.

        Raises:
            RunStoppedError: if one isn't finite in any process.
        """
        if not isinstance(runner.optim_wrapper, AmpOptimWrapper):
            return
        losses = [
            value
            for name, value in (outputs or {}).items()
            if 'loss' in name and _is_number(value)
        ]
        if any_process(not _all_finite(losses)):
            self._stop(runner, 'a loss')

    def _check_step(self, runner, optimizer) -> None:
        gradients = [
            p.grad
            for group in optimizer.param_groups
            for p in group['params']
            if p.grad is not None
        ]
        if gradients and not _all_finite(torch._foreach_norm(gradients)):
            self._stop(runner, 'a gradient')

    def _stop(self, runner, what: str) -> None:
        model = bare_model(runner)
        for name, buffer in model.named_buffers():
            if name in self._buffers:
                buffer.data.copy_(self._buffers[name])
        what = f'{what} of iteration {runner.iter + 1} is not finite'
        path = None
        if _all_finite(
            v for v in model.state_dict().values() if v.is_floating_point()
        ):
            path = save_state(runner, STATE_FILE, runner.iter)
        # Only now, whatever it meets: models and optimizers differ.
        try:
            what += f': {_find_cause(model, self._call, runner)}'
        except Exception as error:
            what += f' (the batch can not be run again: {error!r})'
        if path is None:
            raise RunStoppedError(
                f'{what}; the weights are not finite either, since the step '
                'before: go on from an earlier checkpoint'
            )
        raise RunStoppedError(
            f'{what}; the weights before it are in {path}. Usual causes: too '
            'high a learning rate, a warm-up that is missing, broken boxes or '
            'images (tools/check_data.py), overflow of fp16'
        )


def _is_number(value) -> bool:
    return isinstance(value, float) or (
        isinstance(value, Tensor) and value.is_floating_point()
    )


def _all_finite(values: Iterable[Tensor | float]) -> bool:
    """Whether all numbers are finite, with one look at the device."""
    tensors = [torch.as_tensor(v).detach().float().sum() for v in values]
    if not tensors:
        return True
    return bool(torch.stack(tensors).isfinite().all())


def _find_cause(model: nn.Module, call: tuple[tuple, dict], runner) -> str:
    """Losses and first module, from another pass over the batch."""
    spoiled: list[str] = []

    def look(name):
        def hook(module, args, output):
            if not spoiled and not _all_finite(_tensors(output)):
                spoiled.append(name)

        return hook

    handles = [
        module.register_forward_hook(look(name))
        for name, module in model.named_modules()
        if name and not list(module.children())
    ]
    model.zero_grad()
    args, kwargs = call
    try:
        with runner.optim_wrapper.optim_context(model), torch.enable_grad():
            total, values = model.parse_losses(model(*args, **kwargs))
        total.backward()
    finally:
        for handle in handles:
            handle.remove()
    words = ', '.join(
        f'{name} {torch.as_tensor(value).detach().item():g}'
        for name, value in values.items()
        if _is_number(value)
    )
    if spoiled:
        return f'{words}; the first output that is not finite is {spoiled[0]}'
    # Backwards: the last module in order is the first one reached.
    wrong = [
        name
        for name, p in model.named_parameters()
        if p.grad is not None and not _all_finite([p.grad])
    ]
    if wrong:
        return (
            f'{words}; all outputs are finite, the gradient of {wrong[-1]} '
            'is not'
        )
    return f'{words}; a second pass over the same batch is finite'


def _tensors(output) -> list[Tensor]:
    """Floating-point tensors of a module's output."""
    if isinstance(output, Tensor):
        return [output] if output.is_floating_point() else []
    if isinstance(output, dict):
        output = output.values()
    if isinstance(output, (list, tuple, type({}.values()))):
        return [t for item in output for t in _tensors(item)]
    return []

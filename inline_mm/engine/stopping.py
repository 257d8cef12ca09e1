"""Stopping a run from outside, without losing it."""

import os
import signal
import threading
from functools import partial

import torch
from mmengine.device import get_device
from mmengine.dist import all_reduce, get_world_size
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

from ..errors import RunStoppedError
from .header import batch_of
from .saving import save_state

STATE_FILE = 'interrupted.pth'


def any_process(flag: bool) -> bool:
    """Whether a flag is set in any of the processes; all must ask.

    Args:
        flag (bool): the flag of this process.

    Returns:
        bool: the same in all processes.
    """
    if get_world_size() == 1:
        return flag
    tensor = torch.tensor(int(flag), device=get_device())
    all_reduce(tensor, 'max')
    return bool(tensor.item())


@HOOKS.register_module()
class StopSignalHook(Hook):
    """Saves the run and ends it when SIGINT or SIGTERM arrives.

    That is what Ctrl-C sends, and schedulers before they take a node away
    (Slurm, Kubernetes, spot instances). The current step ends first, a
    validation that is running too. Then `interrupted.pth` has all that a
    resumed run needs, in the middle of an epoch as well, and
    `RunStoppedError` ends the run; tools/train.py exits with 128 plus the
    signal's number. Of several processes all stop at the same step, whichever
    was asked. A second Ctrl-C ends the process at once.

    The launchers put it into every run; ``custom_hooks =
    [dict(type='StopSignalHook')]`` does so elsewhere.
    """

    priority = 'LOWEST'

    def __init__(self) -> None:
        self._received: int | None = None
        self._previous: dict[int, object] = {}

    def before_train(self, runner) -> None:
        """Starts to listen; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._previous[signum] = signal.signal(signum, self._receive)
        # A signal to all processes of a group must not take the workers away
        # before the step ends.
        for loop in (runner.train_loop, runner.val_loop):
            if loop is not None and loop.dataloader.num_workers:
                loader = loop.dataloader
                loader.worker_init_fn = partial(
                    _start_worker, loader.worker_init_fn
                )

    def _receive(self, signum, frame) -> None:
        # Launchers repeat SIGTERM; only the second Ctrl-C is impatience.
        if self._received is not None and signum == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = self._received or signum

    def after_train_iter(
        self, runner, batch_idx, data_batch=None, outputs=None
    ) -> None:
        """Stops if a signal came.

        Raises:
            RunStoppedError: after the state was saved.
        """
        done = runner.iter + 1
        # Gradients that wait for others would be lost.
        if done % batch_of(runner)['accumulated'] == 0:
            self._stop_if_asked(runner, done)

    def after_val_epoch(self, runner, metrics=None) -> None:
        """Stops after a validation if a signal came.

        Raises:
            RunStoppedError: after the state was saved.
        """
        if self._previous:  # not where only a validation runs
            self._stop_if_asked(runner, runner.iter)

    def _stop_if_asked(self, runner, done: int) -> None:
        if not any_process(self._received is not None):
            return
        # A process that was not asked itself stops as the others do.
        signum = self._received or signal.SIGTERM
        path = save_state(runner, STATE_FILE, done)
        self.after_train(runner)
        raise RunStoppedError(
            f'stopped by {signal.Signals(signum).name} after iteration '
            f'{done}; the state is in {path}, and --resume goes on from it',
            signum,
        )

    def after_train(self, runner) -> None:
        """Leaves signals to whom they were before."""
        for signum, handler in self._previous.items():
            # None stands for a handler that Python did not install.
            signal.signal(signum, handler or signal.SIG_DFL)
        self._previous = {}


def _start_worker(start, worker_id: int) -> None:
    """Lets a worker outlive what is sent to the whole group of processes.

    SIGTERM still ends it where its parent sends it, as at the end of a run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_obey_parent, daemon=True).start()
    if start is not None:
        start(worker_id)


def _obey_parent() -> None:
    while True:
        sent = signal.sigwaitinfo({signal.SIGTERM})
        if sent.si_pid == os.getppid():
            os._exit(0)

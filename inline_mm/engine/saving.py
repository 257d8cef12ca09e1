"""Checkpoints that a full disk or a kill can't spoil."""

import contextlib
import os
import re
import shutil
from collections import deque
from pathlib import Path

import torch
from mmengine.dist import barrier, is_main_process
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook
from mmengine.logging import print_log
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from ..checkpoint import CheckpointError, check_checkpoint
from ..checkpoint.writing import write_atomically
from ..errors import LaunchError
from .header import bare_model

ATOMIC = dict(backend='inline_mm_atomic')
# Files without an optimizer: the best ones, and published ones with a hash.
_NOT_RESUMABLE = re.compile(r'^best_|-[0-9a-f]{8}\.pth$')


@register_backend(ATOMIC['backend'])
class AtomicBackend(LocalBackend):
    """mmengine's `LocalBackend`, writing whole files or none."""

    def put(self, obj: bytes, filepath: str | Path) -> None:
        """Write a file under a temporary name, then rename it.

        Args:
            obj (bytes): the content.
            filepath (str | Path): the file, replaced if there is one.

        Raises:
            CheckpointError: if it can't be written; what was there stays.
        """
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(Path(filepath), bytes(obj))


@HOOKS.register_module()
class SafeCheckpointHook(CheckpointHook):
    """mmengine's `CheckpointHook`, safe against full disks and kills.

    Files on local disks appear under their names only when whole, and
    `max_keep_ckpts` deletes an old file after the new one is there, not
    before. The launchers put it in the place of `CheckpointHook`;
    ``default_hooks.checkpoint.type='SafeCheckpointHook'`` does so elsewhere.

    Args: those of :class:`mmengine.hooks.CheckpointHook`.
    """

    @classmethod
    def replace(cls, runner: Runner) -> None:
        """Takes the place of a runner's `CheckpointHook`, as it is set up.

        Args:
            runner (Runner): a runner that doesn't run yet.
        """
        for index, hook in enumerate(runner.hooks):
            if type(hook) is CheckpointHook:
                safe = cls()
                vars(safe).update(vars(hook))
                runner.hooks[index] = safe

    def before_train(self, runner: Runner) -> None:
        """Makes sure that two checkpoints can be written.

        Raises:
            LaunchError: if not.
        """
        local = '://' not in str(self.out_dir or runner.work_dir)
        asked = self.backend_args or self.file_client_args
        if local and not asked:
            self.backend_args = dict(ATOMIC)
        super().before_train(runner)
        if isinstance(self.file_backend, LocalBackend) and is_main_process():
            check_space(
                Path(self.out_dir), bare_model(runner), self.save_optimizer
            )

    def _save_checkpoint_with_step(self, runner, step, meta) -> None:
        limit, self.max_keep_ckpts = self.max_keep_ckpts, -1
        outdated = []
        if limit > 0:
            steps = [s for s in self.keep_ckpt_ids if s != step] + [step]
            outdated, kept = steps[:-limit], steps[-limit:]
            self.keep_ckpt_ids = deque(kept)
            runner.message_hub.update_info('keep_ckpt_ids', kept)
        try:
            super()._save_checkpoint_with_step(runner, step, meta)
        finally:
            self.max_keep_ckpts = limit
        for old in outdated if is_main_process() else []:
            path = self.file_backend.join_path(
                self.out_dir, self.filename_tmpl.format(old)
            )
            if self.file_backend.isfile(path):
                self.file_backend.remove(path)
            elif self.file_backend.isdir(path):  # DeepSpeed's are folders
                self.file_backend.rmtree(path)

    def _save_best_checkpoint(self, runner, metrics) -> None:
        # The file before goes when the new one is there.
        removed: list[str] = []
        self.file_backend.remove = removed.append
        try:
            super()._save_best_checkpoint(runner, metrics)
        finally:
            del self.file_backend.remove
        kept = [self.last_ckpt, *self._best_paths()]
        for path in removed:
            if path not in kept:
                self.file_backend.remove(path)

    def _best_paths(self) -> list[str | None]:
        if not self.save_best:
            return []
        if len(self.key_indicators) == 1:
            return [self.best_ckpt_path]
        return list(self.best_ckpt_path_dict.values())


def save_state(runner: Runner, name: str, iteration: int) -> Path:
    """Saves what a run needs to go on, in the middle of an epoch or not.

    Args:
        runner (Runner): the runner; all of its processes must call.
        name (str): name of the file in the work folder.
        iteration (int): iterations that the weights have seen.

    Returns:
        Path: the file; `last_checkpoint`, which mmengine reads, names it.
    """
    path = Path(runner.work_dir) / name
    runner.save_checkpoint(
        runner.work_dir,
        name,
        by_epoch=False,
        meta=dict(epoch=runner.epoch, iter=iteration),
        backend_args=dict(ATOMIC),
    )
    if is_main_process():
        write_atomically(path.with_name('last_checkpoint'), str(path).encode())
    # Launchers kill the others when the first process ends.
    barrier()
    return path


def find_whole_checkpoint(work_dir: str | Path) -> Path | None:
    """The newest file of a run that it can go on from.

    It is looked for in the work folder, and where its `last_checkpoint` lies.

    What can't be read, such as a file that a kill cut off, is skipped, with a
    line in the log.

    Args:
        work_dir (str | Path): the folder.

    Returns:
        Path | None: the file; None if there is none.
    """
    folders = {Path(work_dir).resolve()}
    note = Path(work_dir) / 'last_checkpoint'
    # With `out_dir` checkpoints lie elsewhere. A full disk leaves it empty.
    if note.is_file() and (newest := note.read_text().strip()):
        folders.add(Path(newest).parent.resolve())
    files = [
        path
        for folder in folders
        for path in folder.glob('*.pth')
        if not _NOT_RESUMABLE.search(path.name)
    ]
    for path in sorted(files, key=os.path.getmtime, reverse=True):
        try:
            check_checkpoint(path)
        except CheckpointError as error:
            print_log(f'--resume skips {error}', logger='current')
        else:
            return path
    return None


def check_space(
    folder: Path, model: torch.nn.Module, with_optimizer: bool
) -> None:
    """Makes sure that a folder takes two checkpoints.

    Args:
        folder (Path): where they go; made if need be.
        model (nn.Module): the model.
        with_optimizer (bool): whether two numbers per trained parameter go
            along, as AdamW has.

    Raises:
        LaunchError: if it can't be written to, or has no room.
    """
    probe = folder / f'.probe-{os.getpid()}'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b'x')
    except OSError as error:
        raise LaunchError(
            f'the work folder {folder} can not be written to '
            f'({error.strerror}); name another with --work-dir'
        ) from None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
    size = sum(t.nbytes for t in model.state_dict().values())
    if with_optimizer:
        size += 2 * sum(
            p.nbytes for p in model.parameters() if p.requires_grad
        )
    free = shutil.disk_usage(folder).free
    if free < 2 * size:
        raise LaunchError(
            f'the work folder {folder} has {free / 2**20:,.0f} MiB free, two '
            f'checkpoints of this run need {2 * size / 2**20:,.0f} MiB; free '
            'some, or name another folder with --work-dir'
        )

"""Hooks for mmengine's runners."""

from pathlib import Path

import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import EpochBasedTrainLoop
from torch import nn

from ..checkpoint import describe_init
from ..checkpoint.reading import hash_file
from .facts import describe_data
from .header import bare_model, batch_of, check_batch_norm, describe_run
from .random_state import get_random_state, set_random_state
from .resuming import skip_batches


@HOOKS.register_module()
class RunRecordHook(Hook):
    """Lets a run say how its backbone began, and go on after a stop.

    The launchers put it into every run; ``custom_hooks =
    [dict(type='RunRecordHook')]`` does so elsewhere.

    - When training starts the log says how the backbone was initialised, how
      many parameters are trained and frozen, the images of a step and the
      learning rate, images kept and dropped, devices, precision, and the
      largest batch. A batch of one image that BatchNorm can't take is
      refused.
    - Checkpoints carry ``meta['backbone_init']``, a dict whose 'text' is what
      the log said, ``meta['batch']``, ``meta['train_data']`` and
      ``meta['random_state']``.
    - A resumed run goes on with that random state, in the middle of an epoch
      after the batches it has had, and with the order of the images even if
      the config sets no seed. With ``num_workers=0`` its
      losses are those of a run that was never stopped. Workers are seeded
      anew whenever they start, so with them the augmentation differs.

    Of several processes the first one's state is kept. All of them take it
    up, as mmengine gives them one seed, too; with
    ``randomness.diff_rank_seed`` the others start anew from their seeds.

    Attributes:
        backbone_init (dict | None): the record of the checkpoint that was
            loaded or, from the start of training on, of this run. None if
            unknown.
    """

    def __init__(self) -> None:
        self.backbone_init: dict | None = None
        self._matched = 0
        self._random_state: dict | None = None
        self._progress: dict | None = None
        self._seen = 0
        self._data: list[dict] | None = None

    @property
    def init_text(self) -> str:
        """str: `backbone_init` in words."""
        return self.backbone_init['text'] if self.backbone_init else 'unknown'

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Notes what the file says of its run, and what it fills."""
        meta = checkpoint.get('meta') or {}
        self.backbone_init = meta.get('backbone_init')
        self._random_state = meta.get('random_state')
        self._progress = meta.get('progress')
        self._matched = _count_matched(bare_model(runner), checkpoint)

    def before_train(self, runner) -> None:
        """Logs the header."""
        model = bare_model(runner)
        # Counters that don't begin at 0 tell resuming from mere loading.
        if runner.iter == 0 and self._matched:
            self.backbone_init = describe_load(
                model, self._matched, runner.cfg.get('load_from')
            )
        elif runner.iter == 0:
            self.backbone_init = describe_backbone(model)
        check_batch_norm(runner)
        if runner.rank == 0:
            self._data = describe_data(runner.train_dataloader.dataset)
        lines = describe_run(runner, self.init_text)
        runner.logger.info(
            'this run\n'
            + '\n'.join(f'  {about}: {text}' for about, text in lines.items())
        )
        # An iterator over a loader draws a number when it is made. It must
        # not come from the generator of dropout: a resumed run makes them at
        # other times.
        for loop in (runner.train_loop, runner.val_loop):
            if loop is not None:
                loop.dataloader.generator = torch.Generator().manual_seed(
                    torch.initial_seed()
                )

    def before_train_epoch(self, runner) -> None:
        """Takes up an interrupted run where it was, once."""
        self._skip_batches(runner)
        state, self._random_state = self._random_state, None
        if state is None or runner.iter == 0:
            return
        sampler = _sampler(runner)
        if sampler is not None and state['sampler_seed'] is not None:
            sampler.seed = state['sampler_seed']
        different = runner.cfg.get('randomness', {}).get('diff_rank_seed')
        if runner.rank == 0 or not different:
            set_random_state(state)

    def _skip_batches(self, runner) -> None:
        """Leaves out what an interrupted epoch has had."""
        progress, self._progress = self._progress, None
        if not isinstance(runner.train_loop, EpochBasedTrainLoop):
            return  # mmengine's iteration-based loop does so itself
        loader = runner.train_loop.dataloader
        if not progress or not progress['batches'] or runner.iter == 0:
            return
        if progress['of'] != len(loader):
            runner.logger.warning(
                f'epoch {runner.epoch + 1} begins again: it had '
                f'{progress["of"]} batches when it was interrupted and has '
                f'{len(loader)} now'
            )
            return
        self._seen = progress['batches']
        runner.logger.info(
            f'epoch {runner.epoch + 1} goes on after its batch {self._seen} '
            f'of {len(loader)}; the log counts from there'
        )
        skip_batches(loader, self._seen)

    def after_train_iter(
        self, runner, batch_idx, data_batch=None, outputs=None
    ) -> None:
        """Counts the batches of the epoch."""
        self._seen += 1

    def after_train_epoch(self, runner) -> None:
        """Begins to count anew."""
        self._seen = 0

    def before_save_checkpoint(self, runner, checkpoint: dict) -> None:
        """Adds the record and the random state."""
        checkpoint['meta']['backbone_init'] = self.backbone_init
        checkpoint['meta']['batch'] = batch_of(runner)
        checkpoint['meta']['train_data'] = self._data
        checkpoint['meta']['progress'] = dict(
            batches=self._seen, of=len(runner.train_loop.dataloader)
        )
        checkpoint['meta']['random_state'] = dict(
            get_random_state(),
            sampler_seed=getattr(_sampler(runner), 'seed', None),
        )


def describe_backbone(model: nn.Module) -> dict | None:
    """How a model's backbone was initialised.

    Args:
        model (nn.Module): the model, with a ``backbone``.

    Returns:
        dict | None: 'text', and for a file also 'source' and what the loader
        noted, such as 'sha256', 'matched' and 'total'. None for a model
        without a ``backbone``.
    """
    backbone = getattr(model, 'backbone', None)
    if backbone is None:
        return None
    info = getattr(backbone, 'init_info', None)
    if info:
        return dict(text=describe_init(backbone), **info)
    cfgs = getattr(backbone, 'init_cfg', None) or []
    for cfg in [cfgs] if isinstance(cfgs, dict) else cfgs:
        if 'checkpoint' in cfg:
            # A host's initialiser takes what it finds and keeps no count.
            source = str(cfg['checkpoint'])
            return dict(text=f'{source} (match not counted)', source=source)
    return dict(text=describe_init(backbone))


def describe_load(model: nn.Module, matched: int, source: str | None) -> dict:
    """A backbone's initialisation by a checkpoint of the whole model.

    Args:
        model (nn.Module): the model, with a ``backbone``.
        matched (int): how many tensors of the backbone the file fills.
        source (str | None): path or URL of the file.

    Returns:
        dict: as of :func:`describe_backbone`.
    """
    total = len(model.backbone.state_dict())
    path = Path(source or '')
    sha256 = hash_file(path) if path.is_file() else None
    return dict(
        text=f'{source or "a checkpoint"} (sha256 '
        f'{sha256[:8] if sha256 else "unknown"}, matched {matched} of '
        f'{total})',
        source=source,
        sha256=sha256,
        matched=matched,
        total=total,
    )


def _count_matched(model: nn.Module, checkpoint: dict) -> int:
    """How many tensors of a model's backbone a whole checkpoint fills."""
    if not hasattr(model, 'backbone'):
        return 0
    found = {
        key.removeprefix('module.'): getattr(value, 'shape', None)
        for key, value in checkpoint.get('state_dict', checkpoint).items()
    }
    return sum(
        found.get(f'backbone.{key}') == value.shape
        for key, value in model.backbone.state_dict().items()
    )


def _sampler(runner):
    """What orders the training images; the loader's own where it batches."""
    batches = runner.train_loop.dataloader.batch_sampler
    return getattr(batches, 'sampler', None)

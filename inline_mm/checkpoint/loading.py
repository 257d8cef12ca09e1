"""Weights into a backbone: all of them, or one clear sentence."""

import logging
from collections import Counter
from pathlib import Path

from mmengine.logging import print_log
from mmengine.model.weight_init import update_init_info
from mmengine.registry import WEIGHT_INITIALIZERS
from torch import Tensor, nn

from .convert import OFFICIAL, Translation, list_some, translate
from .errors import CheckpointError
from .integrity import check_values
from .matching import Match, is_unbuilt, match_tensors
from .source import Source, open_source

# Share of the backbone below which nothing is called loaded.
LOADED = 0.99


@WEIGHT_INITIALIZERS.register_module()
class InLinePretrained:
    """Initialise a backbone from a checkpoint, strictly.

    Use it as ``init_cfg=dict(type='InLinePretrained', checkpoint=...)`` of a
    backbone of this package. It takes official files, converted files and
    whole checkpoints of mmdet, mmseg and mmpretrain, executes nothing pickled
    in them, and stops the run if anything but new output norms has no match.
    `describe_init` tells afterwards what was taken.

    Args:
        checkpoint (str): path, URL, or published name such as
            'inline-swin-tiny'.
        key (str | None): entry of the file to take, such as 'model'. Defaults
            to None: 'state_dict_ema', 'model_ema', 'state_dict' or 'model',
            the first there is, else the file itself.
        allow_partial (bool): take what matches and warn about the rest.
            Damaged files, such as a converted one whose tensors no longer
            have the sha256 of its meta data, are refused all the same.
            Defaults to False.
    """

    def __init__(
        self,
        checkpoint: str,
        key: str | None = None,
        allow_partial: bool = False,
    ) -> None:
        if not isinstance(checkpoint, str | Path):
            raise TypeError(
                'checkpoint must be a path, a URL or a published name, got '
                f'{checkpoint!r}'
            )
        self.checkpoint = checkpoint
        self.key = key
        self.allow_partial = allow_partial

    def __call__(self, module: nn.Module) -> None:
        """Fill `module`, a backbone of this package.

        Raises:
            CheckpointError: if the checkpoint can't be read or doesn't fit.
        """
        self._check_order(module)
        source = open_source(self.checkpoint, self.key)
        load_source(module, source, self.allow_partial)
        # mmengine initialises children after this; theirs are done.
        for child in module.modules():
            if child is not module and hasattr(child, 'is_init'):
                child.is_init = True
        if hasattr(module, '_params_init_info'):
            update_init_info(
                module, init_info=f'InLinePretrained: {describe_init(module)}'
            )

    def _check_order(self, module: nn.Module) -> None:
        """Initialisers run in order: a later one would undo this one."""
        cfgs = getattr(module, 'init_cfg', None)
        if isinstance(cfgs, list) and any(
            cfg.get('type') == type(self).__name__ for cfg in cfgs[:-1]
        ):
            raise CheckpointError(
                'InLinePretrained must be the last entry of init_cfg, got '
                + ', '.join(str(cfg.get('type')) for cfg in cfgs)
            )


def load_source(
    module: nn.Module, source: Source, allow_partial: bool = False
) -> None:
    """Copy a file's tensors into a backbone; note it as `module.init_info`.

    Args:
        module (nn.Module): a backbone of this package.
        source (Source): the opened file.
        allow_partial (bool): take what matches and warn. Defaults to False.

    Raises:
        CheckpointError: if they don't fit together.
    """
    wanted = module.state_dict()
    target = _translate_model(module, wanted)
    found = source.translate()
    if found.family != target.family:
        raise CheckpointError(
            f'{source.path} holds {found.variant}, but the model is '
            f'{target.variant}; use a checkpoint of {target.variant}'
        )
    depth = module.arch.get('depth')
    match = match_tensors(found.tensors, wanted, depth)
    match.leftover += found.unknown
    # What the model has no use for must still be whole.
    match.missing += [
        key
        for key in found.missing
        if key not in match.missing and is_unbuilt(key, wanted, depth)
    ]
    check_values(source.path, match.tensors)
    if not match.complete and not (allow_partial and match.tensors):
        raise CheckpointError(
            _describe_refusal(source, match, found.variant, target.variant)
        )
    module.load_state_dict(match.tensors, strict=False)
    module.init_info = dict(
        source=str(source.path),
        sha256=source.sha256,
        key=source.key,
        variant=found.variant,
        matched=len(match.tensors),
        total=match.total,
    )
    dropped = source.dropped + (['head'] if found.head else [])
    _log(source, match, found.variant, dropped)


def _translate_model(
    module: nn.Module, state_dict: dict[str, Tensor]
) -> Translation:
    try:
        target = translate(state_dict)
    except CheckpointError:
        target = None
    if target is None or target.form == OFFICIAL or target.unknown:
        raise CheckpointError(
            'InLinePretrained initialises backbones of inline_mm, got '
            f'{type(module).__name__}; give it to the init_cfg of the backbone'
        )
    return target


def describe_init(module: nn.Module) -> str:
    """How a backbone was initialised, in a few words.

    Args:
        module (nn.Module): a backbone.

    Returns:
        str: 'random', or 'swin.pth (sha256 0123abcd, matched 201 of 201)'.
    """
    info = getattr(module, 'init_info', None)
    if not info:
        return 'random'
    return (
        f'{info["source"]} (sha256 {info["sha256"][:8]}, matched '
        f'{info["matched"]} of {info["total"]})'
    )


def _describe_refusal(
    source: Source, match: Match, found: str, wanted: str
) -> str:
    if found != wanted:
        start = f'{source.path} holds {found}, but the model is {wanted}'
    else:
        start = f'{source.path} ({found}) does not fit the model'
    parts = [f'matched {len(match.tensors)} of {match.total} backbone tensors']
    for keys, what in (
        (match.missing, 'not in the file'),
        (match.leftover, 'not in the model'),
        (match.mismatched, 'of another shape'),
    ):
        if keys:
            parts.append(f'{len(keys)} {what}: {list_some(keys)}')
    if match.tensors:
        advice = ', or allow_partial=True to take what fits'
    else:
        advice = ''
    return f'{start}: {"; ".join(parts)}; use a checkpoint of {wanted}{advice}'


def _log(
    source: Source, match: Match, variant: str, dropped: list[str]
) -> None:
    matched = len(match.tensors)
    loaded = match.total and matched / match.total >= LOADED
    entry = 'the file itself' if source.key is None else repr(source.key)
    if source.others:
        entry += f', not {", ".join(map(repr, source.others))}'
    lines = [
        f'{"loaded" if loaded else "took a part of"} {variant} from '
        f'{source.path} (sha256 {source.sha256[:8]}, entry {entry}): matched '
        f'{matched} of {match.total} backbone tensors'
    ]
    counts = Counter(match.resized)
    new = sorted({key.split('.')[0] for key in match.new})
    for keys, what in (
        (new, 'new for dense tasks'),
        (dropped, 'left out'),
        ([f'{n} x {text}' for text, n in counts.items()], 'resized'),
        (match.missing, 'NOT in the file, initialised anew'),
        (match.leftover, 'NOT in the model'),
        (match.mismatched, 'NOT of the same shape, initialised anew'),
    ):
        if keys:
            lines.append(f'{what}: {list_some(keys, most=8)}')
    level = logging.INFO if match.complete else logging.WARNING
    print_log('; '.join(lines), logger='current', level=level)

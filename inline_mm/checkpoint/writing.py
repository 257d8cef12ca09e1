"""Converted files: names, meta data, atomic writing."""

import hashlib
import io
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import torch
from torch import Tensor

from ..version import __version__
from .convert import OFFICIAL, Translation, describe_misfit
from .errors import CheckpointError
from .export import to_official
from .integrity import TENSORS_SHA256, check_values, hash_tensors
from .layout import matching_variants
from .source import Source, open_source

SUFFIXES = ('.pth', '.safetensors')


@dataclass(frozen=True)
class Converted:
    """A file that was written.

    Args:
        path (Path): the file.
        variant (str): what it holds, such as 'InLine-Swin tiny'.
        tensors (int): how many tensors.
        key (str | None): entry of the source that was taken.
        dropped (tuple[str]): parts of the source that were left out.
    """

    path: Path
    variant: str
    tensors: int
    key: str | None
    dropped: tuple[str, ...]


def convert_file(
    source: str | Path,
    target: str | Path | None = None,
    official: bool = False,
    key: str | None = None,
    keep_head: bool = False,
    suffix: str = '.pth',
    force: bool = False,
) -> Converted:
    """Convert a checkpoint file.

    The result holds the backbone under `backbone.` (and the classifier under
    `head.fc.`), as the OpenMMLab libraries expect, or with `official` the
    official names under `model`. It loads with ``weights_only=True``.

    Args:
        source (str | Path): path, URL or published name; official files,
            and checkpoints of any task trained with this package.
        target (str | Path | None): file to write, or a folder (made if need
            be; without suffix, or with a slash behind it) for a name with
            variant, date and hash. Defaults to None, the current folder.
        official (bool): write official names. Defaults to False.
        key (str | None): entry of the file to take. Defaults to None, the
            weights behind the published accuracy.
        keep_head (bool): keep the classifier. Defaults to False.
        suffix (str): '.pth' or '.safetensors', where `target` doesn't say.
            Defaults to '.pth'.
        force (bool): replace an existing file. Defaults to False.

    Returns:
        Converted: what was written.

    Raises:
        CheckpointError: in one sentence, why nothing was written.
    """
    folder, path, suffix = _read_target(target, suffix, force)
    opened = open_source(source, key)
    result = _translate(opened, official, keep_head)
    tensors = _arrange(result, official, keep_head)
    meta = _describe(opened, result, tensors)
    data = _serialise(tensors, meta, official, suffix)
    if path is None:
        path = folder / _file_name(result, official, data, suffix)
        _make_folder(folder)
        _check_exists(path, force)
    _check_source(path, opened)
    write_atomically(path, data)
    left_out = ['head'] if result.head and not keep_head else []
    dropped = (*opened.dropped, *left_out)
    return Converted(path, result.variant, len(tensors), opened.key, dropped)


def write_atomically(path: Path, data: bytes) -> None:
    """Write under a temporary name, then rename: all or nothing.

    Raises:
        CheckpointError: if it fails; a file that was there stays as it is.
    """
    part = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        try:
            with part.open('wb') as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise CheckpointError(
            f'cannot write {path}: {error.strerror}; nothing was changed'
        ) from None


def _read_target(
    target: str | Path | None, suffix: str, force: bool
) -> tuple[Path, Path | None, str]:
    """Folder, file (None where it gets its name later), and suffix."""
    text = os.fspath('.' if target is None else target)
    path = Path(text).expanduser()
    if path.is_dir():
        return path, None, suffix
    if text.endswith('/') or not path.suffix:
        if path.exists():
            raise CheckpointError(f'{path} is a file, expected a folder')
        return path, None, suffix
    if path.suffix not in SUFFIXES:
        raise CheckpointError(
            f'{path} is neither a folder nor does it end in '
            f'{" or ".join(SUFFIXES)}; a new folder ends in /'
        )
    if not path.parent.is_dir():
        raise CheckpointError(f'there is no folder {path.parent}')
    _check_exists(path, force)
    return path.parent, path, path.suffix


def _check_exists(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise CheckpointError(f'{path} exists; --force replaces it')


def _check_source(path: Path, source: Source) -> None:
    if path.exists() and path.samefile(source.path):
        raise CheckpointError(f'{path} is the source; name another target')


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(
            f'cannot make the folder {folder}: {error.strerror}'
        ) from None


def _translate(source: Source, official: bool, keep_head: bool) -> Translation:
    if 'converter' in source.meta and not official:
        raise CheckpointError(
            f'{source.path} is converted already; use it as it is'
        )
    result = source.translate()
    if result.unknown or result.missing:
        raise CheckpointError(
            f'{source.path} looks like {result.variant}, but '
            f'{describe_misfit(result)}'
        )
    if keep_head and not result.head:
        raise CheckpointError(
            f'{source.path} has no classifier head to keep; leave out '
            '--keep-head'
        )
    check_values(source.path, {**result.tensors, **result.head})
    if official and result.form == OFFICIAL:
        raise CheckpointError(f'{source.path} has official names already')
    return result


def _arrange(
    result: Translation, official: bool, keep_head: bool
) -> dict[str, Tensor]:
    head = result.head if keep_head else {}
    if official:
        tensors = to_official({**result.tensors, **head}, keep_head)
    else:
        tensors = {f'backbone.{k}': v for k, v in result.tensors.items()}
        tensors.update(head)
    # Copies: a view would take its whole storage along.
    return {key: tensor.clone() for key, tensor in tensors.items()}


def _describe(
    source: Source, result: Translation, tensors: dict[str, Tensor]
) -> dict[str, str]:
    """Meta data, strings only, as safetensors wants them."""
    return {
        'converter': f'inline_mm {__version__}',
        'source': source.path.name,
        'source_sha256': source.sha256,
        'key': '' if source.key is None else source.key,
        'variant': result.variant,
        TENSORS_SHA256: hash_tensors(tensors),
    }


def _serialise(
    tensors: dict[str, Tensor],
    meta: dict[str, str],
    official: bool,
    suffix: str,
) -> bytes:
    if suffix == '.safetensors':
        try:
            from safetensors.torch import save
        except ImportError:
            raise CheckpointError(
                'to write safetensors, run pip install safetensors'
            ) from None
        return save(tensors, metadata={'format': 'pt', **meta})
    entry = 'model' if official else 'state_dict'
    buffer = io.BytesIO()
    torch.save({entry: tensors, 'meta': meta}, buffer)
    return buffer.getvalue()


def _file_name(
    result: Translation, official: bool, data: bytes, suffix: str
) -> str:
    # All that fit: CSwin base and base-384 have the same tensors.
    names = matching_variants(result.tensors, result.layout)
    variant = '-or-'.join(names) or 'custom'
    origin = '3rdparty_in1k' if result.form == OFFICIAL else 'backbone'
    if official:
        origin = 'official'
    date = datetime.now(timezone.utc).strftime('%Y%m%d')
    digest = hashlib.sha256(data).hexdigest()[:8]
    return f'inline-{result.family}-{variant}_{origin}_{date}-{digest}{suffix}'

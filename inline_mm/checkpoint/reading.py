"""Reading a checkpoint file, whatever it turns out to be."""

import difflib
import hashlib
import os
import re
import stat
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from . import unpickling
from .errors import CheckpointError

SUFFIXES = ('.pth', '.pt', '.safetensors', '.bin', '.ckpt')

FORCED = 'TORCH_FORCE_WEIGHTS_ONLY_LOAD'

# How files begin that people take for checkpoints.
_MAGIC = {
    b'\x1f\x8b': 'a gzip archive: unpack it first',
    b'BZh': 'a bzip2 archive: unpack it first',
    b'\xfd7zXZ': 'an xz archive: unpack it first',
    b'7z\xbc\xaf': 'a 7z archive: unpack it first',
    b'Rar!': 'a rar archive: unpack it first',
    b'\x89HDF': 'an HDF5 file, not one of PyTorch',
    b'\x93NUMPY': 'a numpy array, not a checkpoint of PyTorch',
    b'%PDF': 'a PDF document',
    b'\x89PNG': 'an image',
    b'\xff\xd8\xff': 'an image',
    b'version https://git-lfs': (
        'a Git LFS pointer: fetch the file itself with git lfs pull'
    ),
}


def read_file(path: Path) -> tuple[Any, dict]:
    """The content of a checkpoint file; nothing pickled in it is executed.

    Args:
        path (Path): a file of torch.save (zip or older), or safetensors.

    Returns:
        tuple[Any, dict]: the content, tensors on the CPU, objects other than
        tensors and plain containers replaced by placeholders; and its `meta`,
        which safetensors files keep apart.

    Raises:
        CheckpointError: in one sentence, why it can't be read.
    """
    head = check_file(path)
    if path.suffix == '.safetensors' or is_safetensors(head):
        return _read_safetensors(path)
    refuse_other_kinds(path, head)
    if is_forced():
        raise CheckpointError(
            f'unset {FORCED}: under it PyTorch refuses the reader used for '
            f'{path}, which executes nothing of a file either'
        )
    content = unpickle(path)
    meta = content.get('meta') if isinstance(content, dict) else None
    return content, meta if isinstance(meta, dict) else {}


def is_forced() -> bool:
    """Whether the environment forbids PyTorch any unpickler but its own."""
    return os.environ.get(FORCED, '0') in ('1', 'y', 'yes', 'true')


def unpickle(path: Path, mmap: bool = False) -> Any:
    """The content of a file of torch.save; nothing in it is executed.

    Args:
        path (Path): the file.
        mmap (bool): map the tensors instead of reading them, for which the
            file must be a zip archive. Defaults to False.

    Raises:
        CheckpointError: if it can't be read or isn't plain data.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            content = torch.load(
                str(path),  # torch 2.1 maps no other
                map_location='cpu',
                pickle_module=unpickling,
                weights_only=False,
                mmap=mmap,
            )
    except Exception as error:  # a damaged pickle may raise anything
        raise CheckpointError(
            f'{path} is damaged or was not written by torch.save: it ends '
            'early or its parts do not fit together '
            f'({_first_line(error)}); copy or download it again'
        ) from None
    if isinstance(content, unpickling.Placeholder):
        raise CheckpointError(
            f'{path} holds a pickled object of class '
            f'{type(content).__module__}.{type(content).__name__}, expected '
            'a dict of tensors; save model.state_dict() instead of the model'
        )
    return content


def hash_file(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    digest = hashlib.sha256()
    with path.open('rb') as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def check_file(path: Path) -> bytes:
    """Make sure that a path is a readable file with content, not a web page.

    Returns:
        bytes: how it begins.

    Raises:
        CheckpointError: in one sentence, what it is instead.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        raise CheckpointError(_describe_missing(path)) from None
    if stat.S_ISDIR(mode):
        inside = _list_names(path.glob('*'))
        raise CheckpointError(
            f'{path} is a folder, expected a checkpoint file'
            + (f'; it holds {inside}' if inside else '')
        )
    try:
        with path.open('rb') as file:
            head = file.read(512)
    except OSError as error:
        raise CheckpointError(
            f'{path} cannot be read: {error.strerror}'
        ) from None
    if not head:
        raise CheckpointError(f'{path} is empty; download or copy it again')
    if re.match(rb'\s*<(!doctype|html|\?xml|head|!--)', head, re.IGNORECASE):
        raise CheckpointError(
            f'{path} is not a checkpoint, it looks like a web page; open the '
            'link in a browser and save the file itself'
        )
    return head


def refuse_other_kinds(
    path: Path, head: bytes, checksums: bool = True
) -> None:
    """Make sure that a file is one of torch.save, as far as can be seen.

    Args:
        path (Path): the file.
        head (bytes): how it begins.
        checksums (bool): compare those of a zip archive, for which all of
            it is read. Defaults to True.

    Raises:
        CheckpointError: in one sentence, what it is instead.
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            raise CheckpointError(f'{path} is not a checkpoint but {kind}')
    if head.startswith(b'PK'):
        _check_zip(path, checksums)
    elif tarfile.is_tarfile(path):
        raise CheckpointError(
            f'{path} is a tar archive: unpack it, or, if PyTorch before '
            '0.1.10 wrote it, save it again with a newer one'
        )
    elif head[:1] != b'\x80':
        raise CheckpointError(
            f'{path} is not a checkpoint: it begins with {head[:8]!r}, '
            'expected a file of torch.save or safetensors'
        )


def _check_zip(path: Path, checksums: bool) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.rpartition('/')[2] for name in archive.namelist()]
            # torch.load doesn't compare the checksums; a writer may leave
            # them out, as zeros.
            checksums &= any(info.CRC for info in archive.infolist())
            damaged = archive.testzip() if checksums else None
    except (zipfile.BadZipFile, OSError, ValueError, EOFError):
        raise CheckpointError(
            f'{path} is cut off: the end of its zip archive is missing; '
            'download or copy it again'
        ) from None
    if damaged:
        raise CheckpointError(
            f'{path} is damaged: {damaged} in it differs from its checksum; '
            'download or copy it again'
        )
    if 'constants.pkl' in names:
        raise CheckpointError(
            f'{path} is a TorchScript program, expected a checkpoint; save '
            'the state_dict() of the model that it was made from'
        )
    if 'data.pkl' not in names:
        raise CheckpointError(
            f'{path} is a zip archive of other files ({", ".join(names[:3])}'
            '), expected one of torch.save; unpack it first'
        )


def is_safetensors(head: bytes) -> bool:
    """Eight bytes of length (below 100 MB), then JSON."""
    return head[8:9] == b'{' and head[4:8] == bytes(4)


def _read_safetensors(path: Path) -> tuple[dict, dict]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise CheckpointError(
            f'{path} is a safetensors file; run pip install safetensors'
        ) from None
    try:
        with safe_open(path, framework='pt') as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except SafetensorError as error:
        raise CheckpointError(
            f'{path} is damaged or not a safetensors file '
            f'({_first_line(error)}); copy or download it again'
        ) from None


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines() or ['']
    return f'{type(error).__name__}: {text[0][:100]}'.rstrip(': ')


def _list_names(paths, most: int = 5) -> str:
    names = sorted(p.name for p in paths if p.suffix in SUFFIXES)
    return ', '.join(names[:most]) + (', ...' if names[most:] else '')


def _describe_missing(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'{path} does not exist: there is no folder {folder}'
    names = [entry.name for entry in os.scandir(folder)]
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.5)
    if near:
        return f'{path} does not exist; near it lie {", ".join(sorted(near))}'
    inside = _list_names(folder.glob('*'))
    return f'{path} does not exist' + (
        f'; its folder holds {inside}' if inside else ''
    )

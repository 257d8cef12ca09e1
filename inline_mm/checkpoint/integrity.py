"""Whether a file still holds what was downloaded or converted."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from .convert import list_some
from .errors import CheckpointError

# The entry of a converted file's meta data with `hash_tensors` of it.
TENSORS_SHA256 = 'tensors_sha256'


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and values of tensors.

    Args:
        tensors (Mapping[str, Tensor]): tensors by name, in any order.

    Returns:
        str: the hash, hexadecimal.
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        # With lengths and types in front, no two sets read alike.
        title = repr((name, str(tensor.dtype), tuple(tensor.shape)))
        digest.update(title.encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def check_tensors(
    path: Path, tensors: Mapping[str, Tensor], meta: dict
) -> None:
    """Compare a converted file's tensors with the hash in its meta data.

    Raises:
        CheckpointError: if they differ. Files without the hash pass.
    """
    expected = meta.get(TENSORS_SHA256)
    if 'converter' not in meta or expected is None:
        return
    found = hash_tensors(tensors)
    if found != expected:
        raise CheckpointError(
            f'{path} is not as it was converted: a tensor was changed, lost, '
            f'renamed or reshaped (sha256 over its tensors is {found[:8]}..., '
            f'its meta data say {str(expected)[:8]}...); convert or copy it '
            f'again, or save it without {TENSORS_SHA256} if that was you'
        )


def check_values(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Make sure that weights are finite numbers of a floating type.

    Raises:
        CheckpointError: if they aren't, naming the first ones.
    """
    for wrong, what in (
        (lambda t: not t.is_floating_point(), 'no floating-point numbers'),
        (lambda t: not t.isfinite().all(), 'NaN or infinite values'),
    ):
        broken = [key for key, tensor in tensors.items() if wrong(tensor)]
        if broken:
            raise CheckpointError(
                f'{path} holds {what} in {list_some(broken)}; take another '
                'checkpoint, or save it in float32'
            )


def check_name(path: Path, digest: str, meta: dict) -> None:
    """Compare a converted file's hash with the beginning in its name.

    Raises:
        CheckpointError: if they differ. Files with other names pass.
    """
    match = re.search(r'_\d{8}-([0-9a-f]{8})$', path.stem)
    if 'converter' in meta and match and match.group(1) != digest[:8]:
        raise CheckpointError(
            f'{path} was changed or damaged after it was written: its sha256 '
            f'begins with {digest[:8]}, its name says {match.group(1)}; '
            'convert or copy it again'
        )

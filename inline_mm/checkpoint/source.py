"""From what a user names to the backbone tensors in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from .convert import Translation, recognise, translate
from .download import check_record, locate
from .errors import CheckpointError
from .integrity import check_name, check_tensors
from .reading import hash_file, read_file

# Where files keep weights; the first that occurs is taken. EMA weights come
# first: they are those behind published accuracies (official CSwin files).
# mmengine's state_dict holds its EMA weights already.
KEYS = ('state_dict_ema', 'model_ema', 'state_dict', 'model')

# What wrappers put in front of names: DDP, torch.compile, EMA, Lightning.
_WRAPPERS = re.compile(r'(?:module\.|_orig_mod\.|model\.|ema_)*')
_BACKBONE = re.compile(
    r'(?:.*\.)?(?:ema_)?backbone\.(?:module\.|_orig_mod\.)*'
)


@dataclass
class Source:
    """Backbone tensors of a file, names as in the file but for prefixes.

    Args:
        path (Path): the file.
        sha256 (str): hash of the file, hexadecimal.
        key (str | None): entry of the file that was taken; None where the
            file is the state dict itself.
        tensors (dict[str, Tensor]): backbone tensors and the classifier head.
        dropped (list[str]): parts of the file that aren't of the backbone.
        others (list[str]): entries that could have been taken instead.
        meta (dict): what the file says about itself.
    """

    path: Path
    sha256: str
    key: str | None
    tensors: dict[str, Tensor]
    dropped: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    meta: dict = field(default_factory=dict)

    def translate(self) -> Translation:
        """The tensors in our names.

        Raises:
            CheckpointError: for shapes that no InLine model has.
        """
        try:
            return translate(self.tensors)
        except CheckpointError as error:
            raise CheckpointError(f'{self.path}: {error}') from None


def open_source(checkpoint: str | Path, key: str | None = None) -> Source:
    """Find, read and unwrap a checkpoint.

    Args:
        checkpoint (str | Path): path, URL or published name.
        key (str | None): entry of the file to take, such as 'model'. Defaults
            to None, the first of `KEYS` that occurs.

    Returns:
        Source: the backbone tensors.

    Raises:
        CheckpointError: in one sentence, why there are none.
    """
    path = locate(checkpoint)
    content, meta = read_file(path)
    digest = hash_file(path)
    check_record(path, digest)
    check_name(path, digest, meta)
    try:
        state_dict, key, others = pick_state_dict(content, key)
    except CheckpointError as error:
        raise CheckpointError(f'{path}: {error}') from None
    check_tensors(path, state_dict, meta)
    try:
        tensors, dropped = pick_backbone(state_dict)
    except CheckpointError as error:
        raise CheckpointError(f'{path}: {error}') from None
    return Source(path, digest, key, tensors, dropped, others, meta)


def pick_state_dict(
    content: Any, key: str | None = None
) -> tuple[dict[str, Tensor], str | None, list[str]]:
    """The state dict inside a file's content.

    Args:
        content (Any): what the file holds.
        key (str | None): entry to take. Defaults to None, the first of
            `KEYS` that occurs, else the content itself.

    Returns:
        tuple[dict[str, Tensor], str | None, list[str]]: tensors, the entry
        they were found under, and the other entries that hold tensors.
    """
    if not isinstance(content, Mapping):
        raise CheckpointError(
            f'holds a {type(content).__name__}, expected a dict of tensors'
        )
    nested = {
        name: _tensors_of(value)
        for name, value in content.items()
        if isinstance(name, str) and _tensors_of(value)
    }
    if key is None:
        key = next((name for name in KEYS if name in nested), None)
    elif key not in nested:
        choice = 'take ' + ' or '.join(map(repr, nested))
        raise CheckpointError(
            f'has no weights under {key!r}; '
            + (choice if nested else _list_entries(content))
        )
    if key is not None:
        others = [name for name in nested if name != key]
        return nested[key], key, others
    tensors = _tensors_of(content)
    if tensors:
        return tensors, None, []
    raise CheckpointError('holds no weights; ' + _list_entries(content))


def _tensors_of(value: Any) -> dict[str, Tensor]:
    if not isinstance(value, Mapping):
        return {}
    return {
        name: item.detach()
        for name, item in value.items()
        if isinstance(name, str) and isinstance(item, Tensor)
    }


def _list_entries(content: Mapping, most: int = 6) -> str:
    names = [str(name) for name in content]
    if not names:
        return 'it is empty'
    return (
        'its entries are '
        + ', '.join(names[:most])
        + (', ...' if names[most:] else '')
    )


def pick_backbone(
    state_dict: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], list[str]]:
    """Backbone tensors of a state dict, without prefixes.

    Args:
        state_dict (Mapping[str, Tensor]): of a backbone, a classifier, a
            detector or a segmentor, perhaps wrapped.

    Returns:
        tuple[dict[str, Tensor], list[str]]: tensors of the backbone and of a
        classifier's `head.fc`; names of the parts that were left out.
    """
    groups: dict[str, dict[str, Tensor]] = {}
    head, dropped = {}, set()
    state_dict, averaged = _split_averaged(state_dict)
    if averaged:
        dropped.add('ema_*')
    has_backbone = any(_BACKBONE.match(name) for name in state_dict)
    for name, tensor in state_dict.items():
        match = _BACKBONE.match(name)
        bare = name[_WRAPPERS.match(name).end() :]
        if match:
            group = groups.setdefault(match.group(), {})
            group[name[match.end() :]] = tensor
        elif not has_backbone:
            group = groups.setdefault('', {})
            if bare in group:
                raise CheckpointError(
                    f'holds {bare} twice, under different prefixes; extract '
                    'the model you want first'
                )
            group[bare] = tensor
        elif bare.startswith('head.fc.'):
            head[bare] = tensor
        else:
            dropped.add(bare.partition('.')[0])
    if len(groups) > 1:
        raise CheckpointError(
            f'holds several backbones ({", ".join(sorted(groups))}); save '
            'the tensors of the one you want to a file of their own'
        )
    tensors = next(iter(groups.values()), {})
    recognise(tensors)
    return {**tensors, **head}, sorted(dropped)


def _split_averaged(
    state_dict: Mapping[str, Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Plain tensors and, where a state dict holds both, `ema_` copies."""
    averaged = {
        name: tensor
        for name, tensor in state_dict.items()
        if name.removeprefix('module.').startswith('ema_')
    }
    if len(averaged) == len(state_dict):
        return dict(state_dict), {}
    plain = {
        name: tensor
        for name, tensor in state_dict.items()
        if name not in averaged
    }
    return plain, averaged

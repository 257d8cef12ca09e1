"""How a file's tensors and a model's fit together."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from ..layers import resize_bias_table, resize_position_table
from .keys import OUTPUT_NORM
from .layout import NUM_STAGES
from .patterns import Pattern


@dataclass(frozen=True)
class Resizing:
    """A table of positions that may be of another grid in the file.

    Args:
        prefix (int): leading rows that aren't of the grid.
        mode (str): interpolation, that of the models at run time.
        resize (Callable): (table, side, new side) to the new table.
    """

    prefix: int
    mode: str
    resize: Callable[[Tensor, int, int], Tensor]

    def side(self, table: Tensor) -> int | None:
        """Side of the square grid of a table, None where it has none."""
        cells = table.shape[-2] - self.prefix
        side = math.isqrt(max(cells, 0))
        return side if side and side**2 == cells else None


def _resize_bias(table: Tensor, side: int, new_side: int) -> Tensor:
    return resize_bias_table(table, (new_side + 1) // 2)


def _resize_pvt(table: Tensor, side: int, new_side: int) -> Tensor:
    return resize_position_table(
        table, (side, side), (new_side, new_side), 'bilinear'
    )


def _resize_deit(table: Tensor, side: int, new_side: int) -> Tensor:
    return resize_position_table(
        table, (side, side), (new_side, new_side), 'bicubic', 1
    )


RESIZABLE = {
    Pattern(
        'stages.{i}.blocks.{j}.attn.relative_position_bias_table'
    ): Resizing(0, 'bicubic', _resize_bias),
    Pattern('stages.{i}.pos_embed'): Resizing(0, 'bilinear', _resize_pvt),
    Pattern('pos_embed'): Resizing(1, 'bicubic', _resize_deit),
}


@dataclass
class Match:
    """What fits and what doesn't.

    Args:
        tensors (dict[str, Tensor]): what fits, resized where needed.
        total (int): tensors of the model that a file should have.
        missing (list[str]): of these, those that the file lacks.
        leftover (list[str]): tensors of the file without a place.
        mismatched (list[str]): shapes that don't fit, in words.
        resized (list[str]): tables that were resized, in words.
        new (list[str]): output norms that the file's model didn't have.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    total: int = 0
    missing: list[str] = field(default_factory=list)
    leftover: list[str] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether everything found its place."""
        return not (self.missing or self.leftover or self.mismatched)


def match_tensors(
    found: Mapping[str, Tensor],
    wanted: Mapping[str, Tensor],
    depth: int | None = None,
) -> Match:
    """Compare a file's tensors with a model's, both in our names.

    Args:
        found (Mapping[str, Tensor]): of the file.
        wanted (Mapping[str, Tensor]): of the model, which may have fewer
            stages and output norms than the file.
        depth (int | None): blocks of the whole model where it has no stages
            (DeiT). Defaults to None.

    Returns:
        Match: what fits and what doesn't.
    """
    match = Match()
    for key, tensor in wanted.items():
        if _is_new_norm(key, found):
            match.new.append(key)
            continue
        match.total += 1
        if key not in found:
            match.missing.append(key)
            continue
        value = _fit(key, found[key], tensor, match)
        if value is not None:
            match.tensors[key] = value
    match.leftover = [
        key
        for key in found
        if key not in wanted and not is_unbuilt(key, wanted, depth)
    ]
    return match


def is_unbuilt(
    key: str, wanted: Mapping[str, Tensor], depth: int | None = None
) -> bool:
    """Whether a model lacks a tensor because it returns fewer outputs.

    Such a model has no later stages (blocks, in DeiT) and no other norms.
    """
    norm = OUTPUT_NORM.read(key)
    parts = key.split('.')
    if norm is not None:
        part = f'norm{norm["i"]}.'
    elif parts[0] == 'stages' or (
        parts[0] == 'blocks' and depth is not None and int(parts[1]) < depth
    ):
        part = f'{parts[0]}.{parts[1]}.'
    else:
        return False
    return not any(name.startswith(part) for name in wanted)


def _is_new_norm(key: str, found: Mapping[str, Tensor]) -> bool:
    """An output norm of dense tasks; classifiers have the last one only."""
    fields = OUTPUT_NORM.read(key)
    if fields is None or fields['i'] == NUM_STAGES - 1:
        return False
    return not any(
        OUTPUT_NORM.write({**fields, 'p': leaf}) in found
        for leaf in ('weight', 'bias')
    )


def _fit(
    key: str, value: Tensor, target: Tensor, match: Match
) -> Tensor | None:
    """The tensor in the model's shape, or None with a note in `match`."""
    if value.shape == target.shape:
        return value
    for pattern, table in RESIZABLE.items():
        if pattern.read(key) is None or value.ndim != target.ndim:
            continue
        sides = [table.side(tensor) for tensor in (value, target)]
        if all(sides) and value.shape[-1] == target.shape[-1]:
            sizes = ' to '.join(f'{side}x{side}' for side in sides)
            name = key.split('.')[-1]
            match.resized.append(f'{name} {sizes} ({table.mode})')
            return table.resize(value.float(), *sides)
    match.mismatched.append(
        f'{key} is {tuple(value.shape)} in the file, {tuple(target.shape)} '
        'in the model'
    )
    return None

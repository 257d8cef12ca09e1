"""What a state dict holds: family, stages, blocks, and the variant's name.

Everything here reads keys and shapes in our names, so it serves files, models
with fewer stages and ablations alike.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

from torch import Tensor

from ..models import variants
from .keys import (
    BLOCK,
    DOWNSAMPLE,
    INLINE,
    MODEL,
    SOFTMAX,
    STAGE,
    TABLES,
    Rule,
)

TITLES = {
    'pvt': 'InLine-PVT',
    'swin': 'InLine-Swin',
    'cswin': 'InLine-CSwin',
    'deit': 'InLine-DeiT',
}
VARIANTS = {
    'pvt': variants.PVT,
    'swin': variants.SWIN,
    'cswin': variants.CSWIN,
    'deit': variants.DEIT,
}
NUM_STAGES = 4


@dataclass
class Layout:
    """Blocks of a backbone.

    Args:
        family (str): 'pvt', 'swin', 'cswin' or 'deit'.
        stages (dict[int, dict[int, str]]): by stage and block, 'inline' or
            'softmax'. DeiT has one stage.
        residual (bool): InLine blocks have the local residual.
        branches (dict[int, int]): by stage, branches of softmax blocks.
    """

    family: str
    stages: dict[int, dict[int, str]] = field(default_factory=dict)
    residual: bool = True
    branches: dict[int, int] = field(default_factory=dict)

    @property
    def depths(self) -> tuple[int, ...]:
        """Number of blocks per stage."""
        return tuple(
            1 + max(self.stages[index]) for index in sorted(self.stages)
        )

    @property
    def inline_depths(self) -> tuple[int, ...]:
        """Number of InLine blocks per stage."""
        return tuple(
            list(self.stages[index].values()).count(INLINE)
            for index in sorted(self.stages)
        )


def read_layout(keys: Iterable[str], family: str) -> Layout:
    """The layout behind a set of keys in our names.

    Args:
        keys (Iterable[str]): keys in our names; others are passed over.
        family (str): 'pvt', 'swin', 'cswin' or 'deit'.

    Returns:
        Layout: it lists every block of which at least one key is there.
    """
    layout = Layout(family, residual=False)
    seen: dict[tuple[int, int], set[str]] = {}
    for key in keys:
        rule, fields = find_rule(key, family)
        if 'j' in fields:
            place = (fields.get('i', 0), fields['j'])
            kinds = seen.setdefault(place, set())
            if rule.where in (INLINE, SOFTMAX):
                kinds.add(rule.where)
        if 'b' in fields:
            stage = fields['i']
            layout.branches[stage] = max(
                layout.branches.get(stage, 1), fields['b'] + 1
            )
        layout.residual |= 'k' in fields
    for (stage, block), kinds in sorted(seen.items()):
        # Without local residuals, nothing tells an InLine block but that it
        # has no position table.
        inline = INLINE in kinds or family in ('pvt', 'deit')
        inline |= not kinds and not layout.residual
        layout.stages.setdefault(stage, {})[block] = (
            INLINE if inline else SOFTMAX
        )
    return layout


def find_rule(
    key: str, family: str
) -> tuple[Rule, dict[str, int | str]] | tuple[None, dict]:
    """The rule of a key in our names, with the fields of the key."""
    for rule in TABLES[family]:
        if rule.ours is not None:
            fields = rule.ours.read(key)
            if fields is not None:
                return rule, fields
    return None, {}


def expected_keys(layout: Layout) -> list[str]:
    """All keys, in our names, of a complete backbone of this layout.

    Output norms other than the official last one aren't among them.
    """
    depths = dict(zip(sorted(layout.stages), layout.depths, strict=True))
    keys = []
    for rule in TABLES[layout.family]:
        if rule.ours is None or rule.where not in _PLACES:
            continue
        if 'k' in rule.ours.fields and not layout.residual:
            continue
        for place in _PLACES[rule.where](layout, depths):
            values = {
                'k': (0, 2),
                'p': ('weight', 'bias'),
                'b': range(layout.branches.get(place.get('i'), 1)),
            }
            free = [name for name in rule.ours.fields if name in values]
            for choice in product(*(values[name] for name in free)):
                fields = {**place, **dict(zip(free, choice, strict=True))}
                keys.append(rule.ours.write(fields))
    return keys


def _blocks(layout: Layout, depths: dict[int, int], kind: str | None):
    for stage in depths:
        for block in range(depths[stage]):
            # A block of which nothing is there counts as InLine.
            found = layout.stages[stage].get(block, INLINE)
            if kind in (None, found):
                yield {'i': stage, 'j': block}


_PLACES = {
    MODEL: lambda layout, depths: [{}],
    STAGE: lambda layout, depths: [{'i': stage} for stage in depths],
    DOWNSAMPLE: lambda layout, depths: [
        {'i': stage} for stage in depths if stage
    ],
    BLOCK: lambda layout, depths: _blocks(layout, depths, None),
    INLINE: lambda layout, depths: _blocks(layout, depths, INLINE),
    SOFTMAX: lambda layout, depths: _blocks(layout, depths, SOFTMAX),
}


def name_variant(
    tensors: Mapping[str, Tensor], layout: Layout, official: bool = False
) -> str:
    """What users call it, such as 'InLine-Swin tiny'.

    Several variants may fit: their names are joined by 'or'. CSwin base and
    base-384 have the same tensors, and a model with fewer stages may be the
    beginning of several variants.

    Args:
        tensors (Mapping[str, Tensor]): backbone tensors, our names.
        layout (Layout): their layout.
        official (bool): they had official names, under which no ablations
            exist. Defaults to False.

    Returns:
        str: the name.
    """
    title = TITLES[layout.family]
    names = ' or '.join(matching_variants(tensors, layout))
    if not names:
        depths = ', '.join(map(str, layout.depths)) or 'none'
        channels = ', '.join(map(str, _channels(tensors, layout))) or 'none'
        names = f'of depths {depths} and channels {channels}'
    if not any(layout.inline_depths) or (official and not layout.residual):
        return (
            f'{title.removeprefix("InLine-")} {names} with softmax attention'
        )
    if not layout.residual:
        return f'{title} {names} without local residuals'
    return f'{title} {names}'


def matching_variants(
    tensors: Mapping[str, Tensor], layout: Layout
) -> list[str]:
    """Names of the published variants that begin like this one."""
    count = len(layout.depths)
    windows = _table_lengths(tensors)
    names = []
    for name, row in VARIANTS[layout.family].items():
        depths = row.get('depths', (row.get('depth'),))[:count]
        inline_depths = row.get('inline_depths', depths)[:count]
        row_windows = {(2 * row.get('softmax_window', 0) - 1) ** 2}
        if (
            layout.stages
            and layout.depths == depths
            and layout.inline_depths == inline_depths
            and _channels(tensors, layout) == _row_channels(row, count)
            and windows <= row_windows
        ):
            names.append(name)
    return names


def _channels(
    tensors: Mapping[str, Tensor], layout: Layout
) -> tuple[int, ...]:
    prefix = 'blocks' if layout.family == 'deit' else 'stages.{}.blocks'
    norms = [
        tensors.get(f'{prefix.format(stage)}.{min(blocks)}.norm1.weight')
        for stage, blocks in sorted(layout.stages.items())
    ]
    return tuple(0 if norm is None else norm.shape[0] for norm in norms)


def _row_channels(row: dict, count: int) -> tuple[int, ...]:
    dims = row['embed_dims']
    if isinstance(dims, int):
        dims = tuple(dims * 2**stage for stage in range(count))
    return tuple(dims)[:count]


def _table_lengths(tensors: Mapping[str, Tensor]) -> set[int]:
    """Lengths of the relative position tables that occur."""
    return {
        tensor.shape[0]
        for key, tensor in tensors.items()
        if key.endswith('relative_position_bias_table')
    }

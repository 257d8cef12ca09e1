"""Official state dicts to ours, and back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from torch import Tensor

from .errors import CheckpointError
from .keys import (
    HEAD,
    INLINE,
    OUTPUT_NORM,
    OUTPUT_NORMS,
    SOFTMAX,
    TABLES,
    Rule,
)
from .layout import (
    NUM_STAGES,
    Layout,
    expected_keys,
    find_rule,
    name_variant,
    read_layout,
)
from .patterns import any_of

OFFICIAL, OURS = 'official', 'ours'


@dataclass
class Translation:
    """A state dict in our names, and what didn't fit.

    Args:
        tensors (dict[str, Tensor]): backbone tensors, our names.
        head (dict[str, Tensor]): classifier head, our names.
        family (str): 'pvt', 'swin', 'cswin' or 'deit'.
        form (str): names of the source, 'official' or 'ours'.
        layout (Layout): its blocks.
        unknown (list[str]): source keys that no rule of the family fits.
        missing (list[str]): our keys that a complete backbone would have.
    """

    tensors: dict[str, Tensor]
    head: dict[str, Tensor]
    family: str
    form: str
    layout: Layout
    unknown: list[str]
    missing: list[str]

    @property
    def variant(self) -> str:
        """What users call it, such as 'InLine-Swin tiny'."""
        if len(self.unknown) > len(self.tensors) // 4:
            return f'another model (with {list_some(self.unknown)})'
        official = self.form == OFFICIAL
        return name_variant(self.tensors, self.layout, official)


def convert_official(
    state_dict: Mapping[str, Tensor], keep_head: bool = False
) -> dict[str, Tensor]:
    """Official backbone tensors under our names.

    Each source key is used exactly once. Buffers that a model rebuilds
    (`relative_position_index`, `attn_mask`) are dropped. A state dict in our
    names comes back as it is.

    Args:
        state_dict (Mapping[str, Tensor]): the whole official state dict of
            one of the four families, without prefixes.
        keep_head (bool): keep the classifier as `head.fc`. Defaults to
            False.

    Returns:
        dict[str, Tensor]: tensors by our names, which may share memory with
        the source.

    Raises:
        CheckpointError: for unknown, missing or incomplete keys.
    """
    result = translate(state_dict)
    if result.unknown or result.missing:
        raise CheckpointError(
            f'the state dict looks like {result.variant}, but '
            f'{describe_misfit(result)}'
        )
    tensors = dict(result.tensors)
    if keep_head:
        tensors.update(result.head)
    return tensors


def identify(state_dict: Mapping[str, Tensor]) -> str:
    """Family and variant of a state dict, such as 'InLine-Swin tiny'.

    Args:
        state_dict (Mapping[str, Tensor]): official names or ours, without
            prefixes; an incomplete one will do.

    Returns:
        str: name. Several variants are joined by 'or': 'InLine-CSwin base or
        base-384', whose tensors are alike, and models of fewer stages.

    Raises:
        CheckpointError: if no name of any family occurs.
    """
    return translate(state_dict).variant


def describe_misfit(result: Translation) -> str:
    """'2 keys are unknown (a, b) and 1 key is missing (c)'."""
    return ' and '.join(
        f'{len(keys)} {"key is" if len(keys) == 1 else "keys are"} {word} '
        f'({list_some(keys)})'
        for keys, word in (
            (result.unknown, 'unknown'),
            (result.missing, 'missing'),
        )
        if keys
    )


def list_some(items: Iterable[str], most: int = 3) -> str:
    """'a, b, c, ...': the first of some names."""
    items = list(items)
    return ', '.join(items[:most]) + (', ...' if items[most:] else '')


def translate(state_dict: Mapping[str, Tensor]) -> Translation:
    """Any backbone state dict in our names, misfits listed, not raised.

    Args:
        state_dict (Mapping[str, Tensor]): official names or ours, without
            prefixes.

    Returns:
        Translation: the tensors and what is wrong with them.

    Raises:
        CheckpointError: if no name of any family occurs.
    """
    family, form = recognise(state_dict)
    if form == OURS:
        return _read_ours(state_dict, family)
    return _read_official(state_dict, family)


def recognise(keys: Iterable[str]) -> tuple[str, str]:
    """Family and form ('official' or 'ours') that most keys fit."""
    keys = list(keys)
    scores = {
        (family, form): len(list(filter(_keys(family, form).fullmatch, keys)))
        for family in TABLES
        for form in (OFFICIAL, OURS)
    }
    best = max(scores, key=scores.get)
    if not scores[best]:
        first = ', '.join(keys[:3]) or 'none'
        raise CheckpointError(
            'found no tensor of an InLine backbone; expected official names '
            'such as layers.0.blocks.0.norm1.weight, or those of a model of '
            f'inline_mm, got {first}'
        )
    return best


@cache
def _keys(family: str, form: str) -> re.Pattern:
    """Expression for the keys of a family."""
    rules = TABLES[family]
    if form == OFFICIAL:
        return any_of(pattern for rule in rules for pattern in rule.official)
    norms = [OUTPUT_NORM] if family in OUTPUT_NORMS else []
    return any_of([*(rule.ours for rule in rules if rule.ours), *norms])


def _read_ours(state_dict: Mapping[str, Tensor], family: str) -> Translation:
    tensors, head, unknown = {}, {}, []
    norms = family in OUTPUT_NORMS
    for key, tensor in state_dict.items():
        rule, _ = find_rule(key, family)
        if rule is not None and rule.where == HEAD:
            head[key] = tensor
        elif rule is not None or (norms and OUTPUT_NORM.read(key)):
            tensors[key] = tensor
        else:
            unknown.append(key)
    layout = read_layout(tensors, family)
    # Output norms depend on the model's out_indices, so none is required;
    # half of one is a fault.
    missing = [
        key
        for key in expected_keys(layout)
        if key not in tensors and not key.startswith('norm3.')
    ]
    for index in range(NUM_STAGES) if norms else ():
        pair = {f'norm{index}.weight', f'norm{index}.bias'}
        if len(pair & set(tensors)) == 1:
            missing.extend(pair - set(tensors))
    return Translation(tensors, head, family, OURS, layout, unknown, missing)


def _read_official(
    state_dict: Mapping[str, Tensor], family: str
) -> Translation:
    groups, unknown = _group_sources(state_dict, family)
    tensors, head, missing = {}, {}, []
    for ours, (rule, parts) in groups.items():
        if len(parts) < len(rule.official):
            missing.append(ours)
            continue
        sources = [state_dict[parts[index]] for index in sorted(parts)]
        target = head if rule.where == HEAD else tensors
        target[ours] = _transform(rule, sources, parts[0])
    layout = read_layout(tensors, family)
    # The official models have all stages; one without a trace is missing.
    for stage in range(1 if family == 'deit' else NUM_STAGES):
        layout.stages.setdefault(stage, {0: INLINE})
    expected = set(expected_keys(layout))
    missing += [
        key
        for key in expected_keys(layout)
        if key not in tensors and key not in missing
    ]
    unknown += [
        source
        for key in tensors
        if key not in expected
        for source in groups[key][1].values()
    ]
    return Translation(
        tensors, head, family, OFFICIAL, layout, unknown, missing
    )


def _group_sources(
    state_dict: Mapping[str, Tensor], family: str
) -> tuple[dict[str, tuple[Rule, dict[int, str]]], list[str]]:
    """For each of our keys its rule and official keys; and unknown keys."""
    inline = _inline_blocks(state_dict, family)
    groups: dict[str, tuple[Rule, dict[int, str]]] = {}
    unknown = []
    for key in state_dict:
        rule, part, fields = _find_official_rule(key, family, inline)
        if rule is None:
            unknown.append(key)
        elif rule.ours is not None:
            ours = rule.ours.write(fields)
            groups.setdefault(ours, (rule, {}))[1][part] = key
    return groups, unknown


def _inline_blocks(keys: Iterable[str], family: str) -> set[tuple[int, int]]:
    """Stage and index of the blocks with a kernel predictor."""
    pattern = next(
        rule.official[0]
        for rule in TABLES[family]
        if rule.where == INLINE and 'k' in rule.ours.fields
    )
    found = filter(None, map(pattern.read, keys))
    return {(fields.get('i', 0), fields['j']) for fields in found}


def _find_official_rule(
    key: str, family: str, inline: set[tuple[int, int]]
) -> tuple[Rule | None, int, dict[str, int | str]]:
    """Rule of an official key, which of its patterns fits, the fields."""
    for rule in TABLES[family]:
        for part, pattern in enumerate(rule.official):
            fields = pattern.read(key)
            if fields is None:
                continue
            kind = {INLINE: True, SOFTMAX: False}.get(rule.where)
            place = (fields.get('i', 0), fields.get('j'))
            if kind is None or kind == (place in inline):
                return rule, part, fields
    return None, 0, {}


def _transform(rule: Rule, sources: list[Tensor], name: str) -> Tensor:
    try:
        return rule.transform.forward(*sources)
    except RuntimeError:
        shapes = ' and '.join(str(tuple(tensor.shape)) for tensor in sources)
        raise CheckpointError(
            f'{name} has a shape that no InLine model has: {shapes}'
        ) from None

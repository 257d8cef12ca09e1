"""Key patterns: `stages.{i}.blocks.{j}.norm1.{p}` and back.

A pattern is a key with fields. Fields that are numbers may be shifted:
`block{i+1}.` reads `block3.` as i = 2. One pattern serves both to read a key
and to write it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

# What a field may be: i stage, j block in its stage, b branch of a CSwin
# block, k layer of the kernel predictor (its GELU has no tensors), p tensor.
FIELDS = {
    'i': r'\d+',
    'j': r'\d+',
    'b': r'\d+',
    'k': '0|2',
    'p': 'weight|bias',
}
_FIELD = re.compile(r'\{([a-z])([+-]1)?\}')


@dataclass(frozen=True)
class Pattern:
    """A key with fields.

    Args:
        text (str): the key, fields in braces.
    """

    text: str

    def read(self, key: str) -> dict[str, int | str] | None:
        """The fields of a key, or None where the key is another one."""
        regex, shifts = _compile(self.text)
        match = regex.fullmatch(key)
        if match is None:
            return None
        fields = match.groupdict()
        for name, shift in shifts.items():
            fields[name] = int(fields[name]) - shift
        return fields

    def write(self, fields: Mapping[str, int | str]) -> str:
        """The key with these fields."""

        def value(match: re.Match) -> str:
            name, shift = match.groups()
            if shift is None:
                return str(fields[name])
            return str(int(fields[name]) + int(shift))

        return _FIELD.sub(value, self.text)

    @property
    def fields(self) -> list[str]:
        """Names of the fields, in order."""
        return [name for name, _ in _FIELD.findall(self.text)]


def any_of(patterns: Iterable[Pattern]) -> re.Pattern:
    """One expression for keys that fit any of several patterns."""
    parts = [_compile(pattern.text)[0].pattern for pattern in patterns]
    return re.compile(re.sub(r'\?P<[a-z]>', '?:', '|'.join(parts)))


@cache
def _compile(text: str) -> tuple[re.Pattern, dict[str, int]]:
    """Anchored regular expression and the shift of each number."""
    parts, shifts, end = [], {}, 0
    for match in _FIELD.finditer(text):
        name, shift = match.groups()
        parts.append(re.escape(text[end : match.start()]))
        parts.append(f'(?P<{name}>{FIELDS[name]})')
        if FIELDS[name] == r'\d+':
            shifts[name] = int(shift or 0)
        end = match.end()
    parts.append(re.escape(text[end:]))
    return re.compile(''.join(parts)), shifts

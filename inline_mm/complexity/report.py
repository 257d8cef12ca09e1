"""What `tools/get_flops.py` prints and writes."""

import json
from pathlib import Path

from ..checkpoint.writing import write_atomically
from ..engine.launch import LaunchError, read_config
from .count import count


def report(
    config: str,
    shape: tuple[int, int] | None = None,
    json_file: str | None = None,
    options: dict | None = None,
) -> str:
    """Counts a config's model.

    Args:
        config (str): path of a file, or name of a shipped config.
        shape (tuple[int, int] | None): height and width in pixels. Defaults
            to None, the customary one.
        json_file (str | None): file for the counts. Defaults to None.
        options (dict | None): settings that override the config's. Defaults
            to None.

    Returns:
        str: a table by parts, and what the numbers mean.

    Raises:
        LaunchError: if there is nothing to count, in one sentence.
    """
    if json_file is not None and Path(json_file).suffix != '.json':
        raise LaunchError(f'--json must end with .json, got {json_file!r}')
    if shape is not None and min(shape) < 1:
        raise LaunchError(
            f'--shape takes a height and a width in pixels, got {shape[0]} '
            f'{shape[1]}'
        )
    cfg = read_config(config, options)
    try:
        counts = count(cfg, shape)
    except ValueError as error:
        raise LaunchError(f'{config}: {error}') from error
    counts = dict(config=Path(cfg.filename).stem) | counts
    if json_file is not None:
        Path(json_file).parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(counts, indent=2) + '\n'
        write_atomically(Path(json_file), text.encode())
    return describe(counts)


def describe(counts: dict) -> str:
    """Counts in words.

    Args:
        counts (dict): result of :func:`~.flops.count` with 'config'.

    Returns:
        str: several lines.
    """
    height, width = counts['input_shape']
    rows = [('', 'parameters', 'multiply-adds')]
    for name, part in [*counts['parts'].items(), ('whole model', counts)]:
        rows.append(
            (
                name,
                f'{part["params"] / 1e6:.2f} M',
                f'{part["flops"] / 1e9:.2f} G',
            )
        )
    lines = [
        f'{counts["config"]}, one image of {height}x{width} pixels '
        '(height x width)',
        *(f'{name:20}{params:>14}{flops:>16}' for name, params, flops in rows),
    ]
    lines += counts['assumptions']
    if counts['uncounted']:
        lines.append(f'Not in the count: {", ".join(counts["uncounted"])}.')
    return '\n'.join(lines)

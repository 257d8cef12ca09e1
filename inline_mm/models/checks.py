"""Checks of the arguments that all backbones take: got, expected."""

from torch import Tensor

from ..layers import LINEAR_ATTENTIONS


def check_out_indices(
    out_indices: int | tuple[int, ...], num_outputs: int
) -> tuple[int, ...]:
    """Indices of the outputs as a sorted tuple.

    Raises:
        ValueError: when empty, repeated, unsorted or out of range.
    """
    single = not isinstance(out_indices, (list, tuple))
    indices = (out_indices,) if single else tuple(out_indices)
    valid = range(num_outputs)
    if (
        not indices
        or any(type(i) is not int or i not in valid for i in indices)
        or list(indices) != sorted(set(indices))
    ):
        raise ValueError(
            f'out_indices must be increasing numbers from 0 to '
            f'{num_outputs - 1}, got {out_indices!r}'
        )
    return indices


def check_pretrain_img_size(size: int, least: int) -> int:
    """Side of the pretraining images, at least one token of the last stage.

    Raises:
        ValueError: when it is smaller than `least` pixels or no int.
    """
    if not isinstance(size, int) or size < least:
        raise ValueError(
            f'pretrain_img_size must be at least {least} pixels, got {size!r}'
        )
    return size


def check_window_size(window_size: int | None) -> None:
    """Raise ValueError unless None or a positive int."""
    if window_size is not None and (
        type(window_size) is not int or window_size < 1
    ):
        raise ValueError(
            'window_size must be None (global) or a positive number of '
            f'tokens, got {window_size!r}'
        )


def check_drop_rates(drop_rate: float, drop_path_rate: float) -> None:
    """Raise ValueError unless both lie in [0, 1)."""
    for name, rate in (
        ('drop_rate', drop_rate),
        ('drop_path_rate', drop_path_rate),
    ):
        if not 0 <= rate < 1:
            raise ValueError(f'{name} must lie in [0, 1), got {rate!r}')


def check_attention(
    attention: str, kernel: str, normalization: str, local_residual: bool
) -> None:
    """Raise ValueError for an unknown one, or switches that are InLine's."""
    names = ('inline', *LINEAR_ATTENTIONS)
    if attention not in names:
        raise ValueError(
            f'attention must be one of {", ".join(map(repr, names))}, got '
            f'{attention!r}'
        )
    switches = (
        ('kernel', kernel, 'identity'),
        ('normalization', normalization, 'subtract'),
        ('local_residual', local_residual, True),
    )
    for name, value, default in switches:
        if attention != 'inline' and value != default:
            raise ValueError(
                f"{name} is a switch of attention='inline'; with attention="
                f'{attention!r} it must stay {default!r}, got {value!r}'
            )


def check_frozen_stages(frozen_stages: int, num_stages: int) -> None:
    """Raise ValueError unless from -1 (nothing) to `num_stages`."""
    if not isinstance(frozen_stages, int) or not (
        -1 <= frozen_stages <= num_stages
    ):
        raise ValueError(
            'frozen_stages must be a number from -1 (nothing) to '
            f'{num_stages} (all stages), got {frozen_stages!r}'
        )


def check_image(x: Tensor, min_side: int) -> None:
    """Raise ValueError for images smaller than one token of the last stage."""
    # Not their minimum: a compiler would have to know which is smaller.
    if any(side < min_side for side in x.shape[-2:]):
        raise ValueError(
            f'images must be at least {min_side} pixels high and wide, got '
            f'{tuple(x.shape[-2:])}'
        )

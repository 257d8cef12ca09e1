"""Images of a padded batch, each at its own size."""

from collections.abc import Callable

import torch
from torch import Tensor


def forward_true_sizes(
    forward: Callable[[Tensor], tuple[Tensor, ...]],
    x: Tensor,
    true_sizes: list[tuple[int, int]],
    output_sizes: list[tuple[int, int]],
    min_side: int,
) -> tuple[Tensor, ...]:
    """Run a backbone on each image without the padding of its batch.

    Linear attention's means run over all tokens, and softmax attends to
    padding as well. Cutting it off gives what each image alone gives: tables
    of positions, windows and shifts are those of its size, too. Images of one
    size run together.

    Args:
        forward (Callable): images to the maps of the backbone.
        x (Tensor): the padded batch, (B, C, H, W).
        true_sizes (list[tuple[int, int]]): height and width of each image, in
            pixels, without padding, which is at the right and bottom.
        output_sizes (list[tuple[int, int]]): sides of the maps of (H, W).
        min_side (int): smallest side, in pixels, that `forward` takes. Where
            an image is smaller, that much of its padding stays.

    Returns:
        tuple[Tensor]: maps of the padded batch's size, zero beyond the images.

    Raises:
        ValueError: if the sizes don't fit the batch.
    """
    full = tuple(x.shape[-2:])
    if len(true_sizes) != len(x) or any(
        not 0 < true <= padded
        for size in true_sizes
        for true, padded in zip(size, full, strict=True)
    ):
        raise ValueError(
            f'true_sizes must be {len(x)} pairs of height and width, up to '
            f'{full}, got {true_sizes}'
        )
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, size in enumerate(true_sizes):
        cut = tuple(
            max(true, min(min_side, padded))
            for true, padded in zip(size, full, strict=True)
        )
        groups.setdefault(cut, []).append(index)
    if list(groups) == [full]:
        return forward(x)
    maps: list[Tensor | None] = [None] * len(output_sizes)
    for (height, width), indices in groups.items():
        members = torch.tensor(indices, device=x.device)
        for level, out in enumerate(forward(x[members, :, :height, :width])):
            if maps[level] is None:
                maps[level] = out.new_zeros(
                    len(x), out.shape[1], *output_sizes[level]
                )
            rows, columns = out.shape[-2:]
            maps[level][members, :, :rows, :columns] = out
    return tuple(maps)

"""The one table of variants: what differs between the published models.

A row holds, per stage where a tuple:

- embed_dims: channels (an int for DeiT; Swin and CSwin double it per stage).
- depths: number of blocks (DeiT: depth).
- num_heads: attention heads.
- mlp_ratios: hidden channels of the feed-forward networks, in channels.
- inline_depths: number of leading InLine blocks; the others are softmax.
- softmax_window: side of the softmax windows (Swin) or width of the stripes
  (CSwin; an int for all stages or one per stage), in tokens. The last stage
  of CSwin has no stripes.
- pretrain_img_size: side of the ImageNet images, in pixels.

Source: the published InLine models (arXiv 2412.06590) as recorded in the
golden key lists.
"""

from operator import gt

PVT = {
    name: dict(
        embed_dims=(64, 128, 320, 512),
        depths=depths,
        num_heads=(2, 4, 10, 16),
        mlp_ratios=(8, 8, 4, 4),
        pretrain_img_size=224,
    )
    for name, depths in {
        'tiny': (2, 2, 2, 2),
        'small': (3, 4, 6, 3),
        'medium': (3, 4, 18, 3),
        'large': (3, 8, 27, 3),
    }.items()
}

SWIN = {
    'tiny': dict(
        embed_dims=96,
        depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24),
        inline_depths=(2, 2, 6, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
    'small': dict(
        embed_dims=96,
        depths=(2, 2, 18, 2),
        num_heads=(3, 6, 12, 24),
        inline_depths=(2, 2, 0, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
    'base': dict(
        embed_dims=128,
        depths=(2, 2, 18, 2),
        num_heads=(4, 8, 16, 32),
        inline_depths=(2, 2, 2, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
}
SWIN['base-384'] = {
    **SWIN['base'],
    'softmax_window': 12,
    'pretrain_img_size': 384,
}

CSWIN = {
    'tiny': dict(
        embed_dims=64,
        depths=(2, 4, 18, 1),
        num_heads=(2, 4, 8, 16),
        inline_depths=(2, 4, 0, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
    'small': dict(
        embed_dims=64,
        depths=(3, 6, 29, 2),
        num_heads=(2, 4, 8, 16),
        inline_depths=(3, 6, 0, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
    'base': dict(
        embed_dims=96,
        depths=(3, 6, 29, 2),
        num_heads=(4, 8, 16, 32),
        inline_depths=(3, 6, 0, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
}
CSWIN['base-384'] = {
    **CSWIN['base'],
    'softmax_window': 12,
    'pretrain_img_size': 384,
}

DEIT = {
    'tiny': dict(embed_dims=192, depth=12, num_heads=6, pretrain_img_size=224),
    'small': dict(
        embed_dims=320, depth=12, num_heads=10, pretrain_img_size=288
    ),
    'base': dict(
        embed_dims=384, depth=12, num_heads=12, pretrain_img_size=448
    ),
}


def get_variant(table: dict[str, dict], arch: str | dict) -> dict:
    """The row of a variant.

    Args:
        table (dict[str, dict]): the family's rows by name.
        arch (str | dict): name of a row, or a row of one's own with the same
            keys.

    Returns:
        dict: a copy of the row.

    Raises:
        TypeError: for something else than a name or a dict.
        ValueError: for an unknown name, missing or unknown keys, or values
            that aren't as many positive numbers as in the table.
    """
    if isinstance(arch, str):
        if arch not in table:
            raise ValueError(
                f'arch must be one of {", ".join(map(repr, table))} or a '
                f'dict, got {arch!r}'
            )
        return dict(table[arch])
    if not isinstance(arch, dict):
        raise TypeError(f'arch must be a name or a dict, got {arch!r}')
    example = next(iter(table.values()))
    if set(arch) != set(example):
        raise ValueError(
            f'arch as a dict must have the keys {sorted(example)}; missing '
            f'{sorted(set(example) - set(arch))}, unknown '
            f'{sorted(set(arch) - set(example))}'
        )
    for key, value in arch.items():
        wanted = example[key]
        # The stripes of a CSwin without InLine blocks differ by stage.
        if table is CSWIN and key == 'softmax_window':
            wanted = wanted if isinstance(value, int) else (wanted,) * 4
        _check_value(key, value, wanted)
    deeper = map(gt, arch.get('inline_depths', ()), arch.get('depths', ()))
    if any(deeper):
        raise ValueError(
            f"arch['inline_depths'] must not exceed depths {arch['depths']}, "
            f'got {arch["inline_depths"]}'
        )
    return dict(arch)


def _check_value(key: str, value: object, example: int | tuple) -> None:
    """A number where the table has one, else one for each stage."""
    per_stage = isinstance(example, tuple)
    numbers = value if per_stage else [value]
    least = 0 if key == 'inline_depths' else 1
    if (
        not isinstance(numbers, (list, tuple))
        or len(numbers) != (len(example) if per_stage else 1)
        or any(not isinstance(n, (int, float)) or n < least for n in numbers)
    ):
        wanted = f'{len(example)} numbers' if per_stage else 'a number'
        raise ValueError(
            f'arch[{key!r}] must be {wanted} of at least {least}, got '
            f'{value!r}'
        )

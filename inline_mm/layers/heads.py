"""The check that all attention layers share."""


def check_heads(embed_dims: int, num_heads: int, branches: int = 1) -> None:
    """Heads must share the channels, and branches the heads, evenly.

    Args:
        embed_dims (int): number of channels.
        num_heads (int): number of heads.
        branches (int): number of branches. Defaults to 1.

    Raises:
        ValueError: if they don't.
    """
    if num_heads < 1 or embed_dims % num_heads or num_heads % branches:
        multiple = f' and be a multiple of {branches}' if branches > 1 else ''
        raise ValueError(
            f'num_heads must divide embed_dims{multiple}, got {num_heads} '
            f'heads for {embed_dims} channels'
        )

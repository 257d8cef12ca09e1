"""Between tokens (B, H * W, C) and maps (B, C, H, W), both as views."""

from torch import Tensor


def tokens_to_map(x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
    """(B, H * W, C) to a channels-last (B, C, H, W); H, W in `hw_shape`."""
    return x.reshape(x.shape[0], *hw_shape, x.shape[-1]).permute(0, 3, 1, 2)


def map_to_tokens(x: Tensor) -> Tensor:
    """(B, C, H, W) to (B, H * W, C), rows first."""
    return x.flatten(2).transpose(1, 2)

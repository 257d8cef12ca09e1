"""Strided convolution between two stages, on tokens."""

from mmcv.cnn.bricks.transformer import PatchEmbed
from torch import Tensor

from .tokens import tokens_to_map


class ConvDownsample(PatchEmbed):
    """mmcv's `PatchEmbed` on tokens, called as its `PatchMerging` is.

    Args: those of :class:`mmcv.cnn.bricks.transformer.PatchEmbed`.
    """

    def forward(
        self, x: Tensor, hw_shape: tuple[int, int]
    ) -> tuple[Tensor, tuple[int, int]]:
        """(B, H * W, C) to (B, H' * W', C') and (H', W')."""
        return super().forward(tokens_to_map(x, hw_shape))

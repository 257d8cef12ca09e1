"""Down-sampling between two stages, on tokens."""

from mmcv.cnn.bricks.transformer import PatchEmbed
from torch import Tensor, nn
from torch.nn import functional as F

from .tokens import tokens_to_map
from .windows import may_need_padding


class ConvDownsample(PatchEmbed):
    """mmcv's `PatchEmbed` on tokens, called as `PatchMerging` is.

    Args: those of :class:`mmcv.cnn.bricks.transformer.PatchEmbed`.
    """

    def forward(
        self, x: Tensor, hw_shape: tuple[int, int]
    ) -> tuple[Tensor, tuple[int, int]]:
        """(B, H * W, C) to (B, H' * W', C') and (H', W')."""
        return super().forward(tokens_to_map(x, hw_shape))


class PatchMerging(nn.Module):
    """Joins 2 x 2 tokens and halves their channels: 4 C to C'.

    The neighbours stand one after the other, down the columns first, as in
    the official files: one copy of the tokens. (mmcv's layer of this name
    takes channels first, by `nn.Unfold`, which costs three times as much and
    leaves strided gradients to the stage before.)

    Args:
        in_channels (int): number of channels C.
        out_channels (int): number of channels C'.
        norm_eps (float): eps of the layer norm over 4 C channels.
    """

    def __init__(
        self, in_channels: int, out_channels: int, norm_eps: float
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * in_channels, eps=norm_eps)
        self.reduction = nn.Linear(4 * in_channels, out_channels, bias=False)

    def forward(
        self, x: Tensor, hw_shape: tuple[int, int]
    ) -> tuple[Tensor, tuple[int, int]]:
        """(B, H * W, C) to (B, ceil(H / 2) * ceil(W / 2), C'), and its grid.

        Odd sides are padded with a line of zeros.
        """
        batch, _, channels = x.shape
        height, width = ((side + 1) // 2 for side in hw_shape)
        bottom, right = 2 * height - hw_shape[0], 2 * width - hw_shape[1]
        x = x.reshape(batch, *hw_shape, channels)
        if may_need_padding(bottom, right):
            x = F.pad(x, (0, 0, 0, right, 0, bottom))
        x = x.reshape(batch, height, 2, width, 2, channels)
        x = x.permute(0, 1, 3, 4, 2, 5)
        x = x.reshape(batch, height * width, 4 * channels)
        return self.reduction(self.norm(x)), (height, width)

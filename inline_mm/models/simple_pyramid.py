"""Simple feature pyramid: several strides from the one map of InLine-DeiT."""

from mmengine.model import BaseModule, ModuleList
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.nn import functional as F

NORM_EPS = 1e-6


class _ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of a map (B, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def _norm(channels: int) -> nn.Module:
    return _ChannelNorm(channels, eps=NORM_EPS)


@MODELS.register_module()
class SimplePyramid(BaseModule):
    """Maps at strides 4, 8, 16, 32 (and 64) from one at stride 16.

    Strides 4 and 8 come from transposed convolutions, 32 from max pooling;
    each then passes a 1x1 and a 3x3 convolution with layer norms. A fifth map
    is every other pixel of the fourth, as in mmdet's `FPN`.

    mmsegmentation has a neck of its own for this, `Feature2Pyramid`; mmdet
    has none.

    Args:
        in_channels (int): channels of the map, a multiple of 4.
        out_channels (int): channels of the outputs. Defaults to 256.
        num_outs (int): number of outputs, 4 or 5. Defaults to 5.
        init_cfg (dict | list[dict] | None): initialisation. Defaults to None,
            torch's.

    Source: Li et al., Exploring Plain Vision Transformer Backbones for Object
    Detection (arXiv 2203.16527), section 3.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 256,
        num_outs: int = 5,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(init_cfg=init_cfg)
        if in_channels % 4:
            raise ValueError(
                f'in_channels must be a multiple of 4, got {in_channels!r}'
            )
        if num_outs not in (4, 5):
            raise ValueError(f'num_outs must be 4 or 5, got {num_outs!r}')
        self.num_outs = num_outs
        half, quarter = in_channels // 2, in_channels // 4
        self.scales = ModuleList(
            [
                nn.Sequential(
                    nn.ConvTranspose2d(in_channels, half, 2, stride=2),
                    _norm(half),
                    nn.GELU(),
                    nn.ConvTranspose2d(half, quarter, 2, stride=2),
                ),
                nn.ConvTranspose2d(in_channels, half, 2, stride=2),
                nn.Identity(),
                # A last odd line has an output of its own, as at stride 32
                # of the hierarchical backbones.
                nn.MaxPool2d(2, ceil_mode=True),
            ]
        )
        self.laterals = ModuleList(
            nn.Sequential(
                nn.Conv2d(channels, out_channels, 1, bias=False),
                _norm(out_channels),
                nn.Conv2d(
                    out_channels, out_channels, 3, padding=1, bias=False
                ),
                _norm(out_channels),
            )
            for channels in (quarter, half, in_channels, in_channels)
        )

    def forward(self, inputs: tuple[Tensor]) -> tuple[Tensor, ...]:
        """One map in a tuple to `num_outs` maps.

        Args:
            inputs (tuple[Tensor]): a single (B, in_channels, H, W).

        Returns:
            tuple[Tensor]: (B, out_channels, H_i, W_i), H_i about 4 H, 2 H, H,
            H / 2, H / 4.

        Raises:
            ValueError: for more than one map.
        """
        if len(inputs) != 1:
            raise ValueError(
                f'SimplePyramid takes one map, got {len(inputs)}: give the '
                'backbone one index in out_indices'
            )
        outputs = [
            lateral(scale(inputs[0]))
            for scale, lateral in zip(self.scales, self.laterals, strict=True)
        ]
        if self.num_outs == 5:
            outputs.append(F.max_pool2d(outputs[-1], 1, stride=2))
        return tuple(outputs)

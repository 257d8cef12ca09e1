"""InLine-PVT: the pyramid vision transformer with InLine attention.

Paper: Bridging the Divide: Reconsidering Softmax and Linear Attention
(arXiv 2412.06590), on PVT (arXiv 2102.12122) without spatial reduction.
"""

from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.registry import MODELS
from torch import nn

from ..layers import ConvDownsample
from .hierarchical import STRIDES, HierarchicalBackbone
from .variants import PVT

# Patch embeddings and blocks have norms of different eps.
EMBED_NORM = dict(type='LN', eps=1e-5)


@MODELS.register_module()
class InLinePVT(HierarchicalBackbone):
    """InLine-PVT backbone: every block is an InLine block.

    Maps (B, in_channels, H, W) to a tuple of (B, C_i, H_i, W_i) at strides 4,
    8, 16, 32; sides that the stride doesn't divide are rounded down. The maps
    aren't normalised, as in every PVT detector.

    Args:
        arch (str | dict): 'tiny', 'small', 'medium', 'large', or a dict with
            the keys of a row of `inline_mm.models.variants.PVT`. Defaults to
            'tiny'.
        in_channels (int): channels of the images. Defaults to 3.
        pretrain_img_size (int | None): side of the images that the position
            tables are made for, in pixels. Defaults to None, the variant's.
        out_indices (int | tuple[int]): stages to return, from 0 to 3; later
            stages aren't built. Defaults to (0, 1, 2, 3).
        window_size (int | None): side of the windows of the InLine blocks, in
            tokens; None is global, the published models. Blocks of odd index
            are shifted by half a window. Defaults to None.
        drop_rate (float): dropout after position tables, projections and in
            feed-forward networks. Defaults to 0.
        drop_path_rate (float): stochastic depth of the last block, rising
            linearly from 0. Defaults to 0.1.
        frozen_stages (int): -1 freezes nothing, 0 the patch embedding with
            the first position table, k > 0 also stages 0 to k - 1. Frozen
            parts stay in evaluation mode. Defaults to -1.
        with_cp (bool): recompute blocks in the backward pass to save memory.
            Defaults to False.
        kernel (str): kernel of queries and keys, see `InLineAttention`.
            Defaults to 'identity'.
        normalization (str): 'subtract' (InLine), 'divide' or 'softmax'.
            Defaults to 'subtract'.
        local_residual (bool): the local residual of InLine attention.
            Defaults to True.
        attention (str): another linear attention in the place of InLine's, a
            name of `inline_mm.layers.LINEAR_ATTENTIONS` such as 'focused'; it
            takes none of the three switches above. Defaults to 'inline'.
        init_cfg (dict | list[dict] | None): initialisation;
            ``dict(type='InLinePretrained', checkpoint=...)`` loads official
            or converted weights. Defaults to None, random.
    """

    variants = PVT
    norm_eps = 1e-6
    output_norm = False
    position_tables = True

    def _make_patch_embed(self, in_channels: int) -> nn.Module:
        return PatchEmbed(
            in_channels,
            self.num_features[0],
            kernel_size=4,
            stride=4,
            padding=0,
            norm_cfg=EMBED_NORM,
        )

    def _map_side(self, side: int, index: int) -> int:
        return side // STRIDES[index]

    def _make_downsample(self, index: int) -> nn.Module:
        return ConvDownsample(
            self.num_features[index - 1],
            self.num_features[index],
            kernel_size=2,
            stride=2,
            padding=0,
            norm_cfg=EMBED_NORM,
        )

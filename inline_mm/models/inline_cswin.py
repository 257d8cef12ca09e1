"""InLine-CSwin: the CSWin transformer with InLine blocks in two stages.

Paper: Bridging the Divide: Reconsidering Softmax and Linear Attention
(arXiv 2412.06590), on CSWin (arXiv 2107.00652).
"""

from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.registry import MODELS
from torch import nn

from ..layers import ConvDownsample, StripeAttention
from .hierarchical import NUM_STAGES, HierarchicalBackbone
from .variants import CSWIN


@MODELS.register_module()
class InLineCSwin(HierarchicalBackbone):
    """InLine-CSwin backbone: InLine blocks first, striped softmax after.

    Maps (B, in_channels, H, W) to a tuple of (B, C_i, H_i, W_i) at strides 4,
    8, 16, 32: H_0 is (H + 1) // 4, later sides are halved and rounded up.
    Each map has a layer norm of its own. InLine blocks add both LePE, the
    static depthwise convolution of CSWin, and the local residual, whose
    kernels come from the mean of the block's un-normalised input. Softmax
    blocks have two branches of stripes, in the last stage one branch over the
    whole map; this follows from the stage, not from the size of the map.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', 'base-384', or a dict with
            the keys of a row of `inline_mm.models.variants.CSWIN`: its
            `inline_depths` says which blocks are InLine (all zero: plain
            CSWin), `softmax_window` how wide the stripes of the others are.
            Defaults to 'tiny'.
        in_channels (int): channels of the images. Defaults to 3.
        pretrain_img_size (int | None): side of the pretraining images, in
            pixels; this family has no table that depends on it. Defaults to
            None, the variant's.
        out_indices (int | tuple[int]): stages to return, from 0 to 3; later
            stages aren't built. Defaults to (0, 1, 2, 3).
        window_size (int | None): side of the windows of the InLine blocks, in
            tokens; None is global, the published models. Blocks of odd index
            are shifted by half a window. Defaults to None.
        drop_rate (float): dropout after the patch embedding, projections and
            in feed-forward networks. Defaults to 0.
        drop_path_rate (float): stochastic depth of the last block, rising
            linearly from 0. Defaults to 0.1.
        frozen_stages (int): -1 freezes nothing, 0 the patch embedding, k > 0
            also stages 0 to k - 1 with their output norms. Frozen parts stay
            in evaluation mode. Defaults to -1.
        with_cp (bool): recompute blocks in the backward pass to save memory.
            Defaults to False.
        kernel (str): kernel of queries and keys, see `InLineAttention`.
            Defaults to 'identity'.
        normalization (str): 'subtract' (InLine), 'divide' or 'softmax'.
            Defaults to 'subtract'.
        local_residual (bool): the local residual of InLine attention; LePE
            stays. Defaults to True.
        attention (str): another linear attention in the place of InLine's, a
            name of `inline_mm.layers.LINEAR_ATTENTIONS` such as 'focused'; it
            takes none of the three switches above, and has no LePE. Defaults
            to 'inline'.
        init_cfg (dict | list[dict] | None): initialisation;
            ``dict(type='InLinePretrained', checkpoint=...)`` loads official
            or converted weights. Defaults to None, random.
    """

    variants = CSWIN
    norm_eps = 1e-5
    output_norm = True
    pool_input = True
    lepe = True

    def _make_patch_embed(self, in_channels: int) -> nn.Module:
        return PatchEmbed(
            in_channels,
            self.num_features[0],
            kernel_size=7,
            stride=4,
            padding=2,
            norm_cfg=dict(type='LN', eps=self.norm_eps),
        )

    def _map_side(self, side: int, index: int) -> int:
        return -(-((side + 1) // 4) // 2**index)

    def _make_downsample(self, index: int) -> nn.Module:
        return ConvDownsample(
            self.num_features[index - 1],
            self.num_features[index],
            kernel_size=3,
            stride=2,
            padding=1,
            norm_cfg=dict(type='LN', eps=self.norm_eps),
        )

    def _make_softmax_attention(self, index: int, position: int) -> nn.Module:
        width = self.arch['softmax_window']
        if not isinstance(width, int):
            width = width[index]
        return StripeAttention(
            self.num_features[index],
            self.arch['num_heads'][index],
            None if index == NUM_STAGES - 1 else width,
            drop_rate=self.drop_rate,
        )

"""InLine-DeiT: the plain vision transformer with InLine attention.

Paper: Bridging the Divide: Reconsidering Softmax and Linear Attention
(arXiv 2412.06590), on DeiT (arXiv 2012.12877).
"""

import torch
from mmcv.cnn.bricks.transformer import PatchEmbed
from mmengine.model import BaseModule, ModuleList
from mmengine.registry import MODELS
from torch import Tensor, nn

from ..layers import (
    Block,
    InLineAttention,
    LinearAttention,
    resize_position_table,
    tokens_to_output,
)
from .checks import (
    check_attention,
    check_drop_rates,
    check_frozen_stages,
    check_image,
    check_out_indices,
    check_pretrain_img_size,
)
from .hierarchical import random_first
from .true_sizes import forward_true_sizes
from .variants import DEIT, get_variant

PATCH = 16
MLP_RATIO = 4
NORM_EPS = 1e-6
OUT_TYPES = ('featmap', 'cls_token')


@MODELS.register_module()
class InLineDeiT(BaseModule):
    """InLine-DeiT backbone: every block is an InLine block.

    The class token comes first and attends like any other, but has no local
    residual. Sides that 16 doesn't divide are padded with zeros (right and
    bottom), so that they are rounded up. All outputs pass the one final norm.

    For dense prediction take one map and `SimplePyramid` (mmdet), or four
    blocks' maps and mmseg's `Feature2Pyramid`. For classification take the
    class token, or the map and a host's `GlobalAveragePooling`.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict with the keys of
            a row of `inline_mm.models.variants.DEIT`. Defaults to 'tiny'.
        in_channels (int): channels of the images. Defaults to 3.
        pretrain_img_size (int | None): side of the images that the position
            table is made for, in pixels; at other sizes it is resized
            bicubically, its entry of the class token kept. Defaults to None,
            the variant's.
        out_indices (int | tuple[int] | None): blocks to return, from 0 to
            depth - 1; later blocks aren't built. Defaults to None, the last.
        out_type (str): 'featmap', maps (B, C, H / 16, W / 16) without the
            class token, or 'cls_token', the class token (B, C). Defaults to
            'featmap'.
        drop_rate (float): dropout after the position table, projections and
            in feed-forward networks. Defaults to 0.
        drop_path_rate (float): stochastic depth of the last block, rising
            linearly from 0. Defaults to 0.1.
        frozen_stages (int): -1 freezes nothing, 0 the patch embedding with
            class token and position table, k > 0 also blocks 0 to k - 1; with
            all blocks goes the final norm. Frozen parts stay in evaluation
            mode. Defaults to -1.
        with_cp (bool): recompute blocks in the backward pass to save memory.
            Defaults to False.
        kernel (str): kernel of queries and keys, see `InLineAttention`.
            Defaults to 'identity'.
        normalization (str): 'subtract' (InLine), 'divide' or 'softmax'; the
            last without local residual is plain DeiT. Defaults to 'subtract'.
        local_residual (bool): the local residual of InLine attention.
            Defaults to True.
        attention (str): another linear attention in the place of InLine's, a
            name of `inline_mm.layers.LINEAR_ATTENTIONS` such as 'focused'; it
            takes none of the three switches above. Defaults to 'inline'.
        init_cfg (dict | list[dict] | None): initialisation;
            ``dict(type='InLinePretrained', checkpoint=...)`` loads official
            or converted weights. Defaults to None, random.
    """

    takes_true_sizes = True

    def __init__(
        self,
        arch: str | dict = 'tiny',
        in_channels: int = 3,
        pretrain_img_size: int | None = None,
        out_indices: int | tuple[int, ...] | None = None,
        out_type: str = 'featmap',
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        frozen_stages: int = -1,
        with_cp: bool = False,
        kernel: str = 'identity',
        normalization: str = 'subtract',
        local_residual: bool = True,
        attention: str = 'inline',
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(init_cfg=random_first(init_cfg))
        self.arch = get_variant(DEIT, arch)
        depth = self.arch['depth']
        if out_indices is None:
            out_indices = depth - 1
        self.out_indices = check_out_indices(out_indices, depth)
        if out_type not in OUT_TYPES:
            raise ValueError(
                f'out_type must be one of {", ".join(map(repr, OUT_TYPES))}, '
                f'got {out_type!r}'
            )
        check_attention(attention, kernel, normalization, local_residual)
        check_drop_rates(drop_rate, drop_path_rate)
        check_frozen_stages(frozen_stages, depth)
        self.out_type = out_type
        self.frozen_stages = frozen_stages
        if pretrain_img_size is None:
            pretrain_img_size = self.arch['pretrain_img_size']
        self.pretrain_img_size = check_pretrain_img_size(
            pretrain_img_size, PATCH
        )
        self.num_features = [self.arch['embed_dims']] * len(self.out_indices)
        self._add_embedding(in_channels, drop_rate)
        self.attention = attention
        inline_cfg = dict(
            kernel=kernel,
            normalization=normalization,
            local_residual=local_residual,
        )
        # Linear in depth over the whole model, blocks that aren't built too.
        # (On the CPU: the model may be built on the meta device.)
        rates = torch.linspace(0, drop_path_rate, depth, device='cpu').tolist()
        self.blocks = ModuleList(
            self._make_block(inline_cfg, drop_rate, rate, with_cp)
            for rate in rates[: self.out_indices[-1] + 1]
        )
        self.norm = nn.LayerNorm(self.arch['embed_dims'], eps=NORM_EPS)
        self._freeze()

    def _add_embedding(self, in_channels: int, drop_rate: float) -> None:
        channels = self.arch['embed_dims']
        side = self.pretrain_img_size // PATCH
        self.patch_embed = PatchEmbed(
            in_channels, channels, kernel_size=PATCH, stride=PATCH
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, channels))
        self.pos_grid = (side, side)
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + side**2, channels))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.drop = nn.Dropout(drop_rate)

    def _make_block(
        self,
        inline_cfg: dict,
        drop_rate: float,
        drop_path_rate: float,
        with_cp: bool,
    ) -> Block:
        channels = self.arch['embed_dims']
        sizes = channels, self.arch['num_heads']
        common = dict(num_prefix_tokens=1, drop_rate=drop_rate)
        if self.attention == 'inline':
            attention = InLineAttention(*sizes, **inline_cfg, **common)
        else:
            attention = LinearAttention(*sizes, self.attention, **common)
        return Block(
            channels,
            attention,
            MLP_RATIO,
            NORM_EPS,
            drop_rate=drop_rate,
            drop_path_rate=drop_path_rate,
            with_cp=with_cp,
        )

    def forward(
        self, x: Tensor, true_sizes: list[tuple[int, int]] | None = None
    ) -> tuple[Tensor, ...]:
        """Images to the outputs of `out_indices`.

        Args:
            x (Tensor): (B, in_channels, H, W), H and W at least 16 pixels.
            true_sizes (list[tuple[int, int]] | None): height and width of
                each image without padding, which then stays out of the
                attention, see `TrueSizeHook`; for maps only. Defaults to
                None: all of x is image.

        Returns:
            tuple[Tensor]: maps (B, C, ceil(H / 16), ceil(W / 16)), or class
            tokens (B, C).
        """
        if true_sizes is None:
            return self._forward(x)
        if self.out_type != 'featmap':
            raise ValueError(
                "true_sizes need out_type='featmap', got "
                f'{self.out_type!r}: images of a classifier have one size'
            )
        size = tuple(-(-side // PATCH) for side in x.shape[-2:])
        return forward_true_sizes(
            self._forward, x, true_sizes, [size] * len(self.out_indices), PATCH
        )

    def _forward(self, x: Tensor) -> tuple[Tensor, ...]:
        check_image(x, min_side=PATCH)
        x, hw_shape = self.patch_embed(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + resize_position_table(
            self.pos_embed,
            self.pos_grid,
            hw_shape,
            mode='bicubic',
            num_prefix_tokens=1,
        )
        x = self.drop(x)
        outputs = []
        for index, block in enumerate(self.blocks):
            x = block(x, hw_shape)
            if index in self.out_indices:
                outputs.append(self._output(self.norm(x), hw_shape))
        return tuple(outputs)

    def train(self, mode: bool = True) -> 'InLineDeiT':
        """Set the mode; frozen parts stay in evaluation mode."""
        super().train(mode)
        self._freeze()
        return self

    def _output(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        if self.out_type == 'cls_token':
            return x[:, 0]
        return tokens_to_output(x[:, 1:], hw_shape)

    def _freeze(self) -> None:
        """Freeze what `frozen_stages` names."""
        if self.frozen_stages < 0:
            return
        self.cls_token.requires_grad_(False)
        self.pos_embed.requires_grad_(False)
        self.drop.eval()
        frozen = [self.patch_embed, *self.blocks[: self.frozen_stages]]
        if self.frozen_stages >= len(self.blocks):
            frozen.append(self.norm)
        for module in frozen:
            module.eval()
            module.requires_grad_(False)

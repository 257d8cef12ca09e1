"""What the hierarchical backbones share: four stages, outputs, freezing."""

import torch
from mmengine.model import BaseModule, ModuleList
from torch import Tensor, nn

from ..layers import (
    Block,
    InLineAttention,
    LinearAttention,
    tokens_to_output,
)
from ..layers.position import resize_position_table
from .checks import (
    check_attention,
    check_drop_rates,
    check_frozen_stages,
    check_image,
    check_out_indices,
    check_pretrain_img_size,
    check_window_size,
)
from .true_sizes import forward_true_sizes
from .variants import get_variant

NUM_STAGES = 4
STRIDES = (4, 8, 16, 32)

# The rule of timm and mm for transformers; convolutions keep torch's default.
DEFAULT_INIT = [
    dict(type='TruncNormal', layer='Linear', std=0.02, bias=0.0),
    dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
]


def random_first(init_cfg: dict | list[dict] | None) -> list[dict]:
    """The random start, then what a config asks for.

    What a partial checkpoint leaves alone is initialised all the same.
    """
    given = [init_cfg] if isinstance(init_cfg, dict) else init_cfg or []
    return [*DEFAULT_INIT, *given]


class Stage(BaseModule):
    """Down-sampling, position table (PVT), blocks.

    Args:
        downsample (nn.Module | None): (tokens, (H, W)) to the same of this
            stage; None where the patch embedding came before.
        blocks (list[Block]): the blocks.
        pos_grid (tuple[int, int] | None): grid of the position table; None
            for no table.
        embed_dims (int): number of channels.
        drop_rate (float): dropout after the embedding.
    """

    def __init__(
        self,
        downsample: nn.Module | None,
        blocks: list[Block],
        pos_grid: tuple[int, int] | None,
        embed_dims: int,
        drop_rate: float,
    ) -> None:
        super().__init__()
        self.downsample = downsample
        self.pos_grid = pos_grid
        self.pos_embed = None
        if pos_grid is not None:
            self.pos_embed = nn.Parameter(
                torch.zeros(1, pos_grid[0] * pos_grid[1], embed_dims)
            )
            nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.drop = nn.Dropout(drop_rate)
        self.blocks = ModuleList(blocks)

    def forward(
        self, x: Tensor, hw_shape: tuple[int, int]
    ) -> tuple[Tensor, tuple[int, int]]:
        """(B, N, C) and (H, W) of the stage before to those of this one."""
        if self.downsample is not None:
            x, hw_shape = self.downsample(x, hw_shape)
        if self.pos_embed is not None:
            x = x + resize_position_table(
                self.pos_embed, self.pos_grid, hw_shape, mode='bilinear'
            )
        x = self.drop(x)
        for block in self.blocks:
            x = block(x, hw_shape)
        return x, hw_shape


class HierarchicalBackbone(BaseModule):
    """Base of `InLinePVT`, `InLineSwin` and `InLineCSwin`.

    A family says what its patch embedding, down-sampling and attention are
    (the three methods at the end); everything else is here. The arguments are
    described in the families.
    """

    variants: dict[str, dict]
    norm_eps: float
    output_norm: bool
    takes_true_sizes = True
    position_tables = False
    pool_input = False
    lepe = False

    def __init__(
        self,
        arch: str | dict = 'tiny',
        in_channels: int = 3,
        pretrain_img_size: int | None = None,
        out_indices: int | tuple[int, ...] = (0, 1, 2, 3),
        window_size: int | None = None,
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
        self.arch = get_variant(self.variants, arch)
        self.out_indices = check_out_indices(out_indices, NUM_STAGES)
        check_window_size(window_size)
        check_attention(attention, kernel, normalization, local_residual)
        check_drop_rates(drop_rate, drop_path_rate)
        check_frozen_stages(frozen_stages, NUM_STAGES)
        if pretrain_img_size is None:
            pretrain_img_size = self.arch['pretrain_img_size']
        self.pretrain_img_size = check_pretrain_img_size(
            pretrain_img_size, STRIDES[-1]
        )
        self.num_features = self._stage_channels()
        self.frozen_stages = frozen_stages
        self.drop_rate = drop_rate
        self.attention = attention
        self.window_size = window_size
        self.inline_cfg = dict(
            kernel=kernel,
            normalization=normalization,
            local_residual=local_residual,
            lepe=self.lepe,
        )
        self.patch_embed = self._make_patch_embed(in_channels)
        self.stages = ModuleList(
            self._make_stage(index, drop_path_rate, with_cp)
            for index in range(self.out_indices[-1] + 1)
        )
        if self.output_norm:
            for index in self.out_indices:
                norm = nn.LayerNorm(
                    self.num_features[index], eps=self.norm_eps
                )
                self.add_module(f'norm{index}', norm)
        self._freeze()

    def forward(
        self, x: Tensor, true_sizes: list[tuple[int, int]] | None = None
    ) -> tuple[Tensor, ...]:
        """Images to the maps of `out_indices`.

        Args:
            x (Tensor): (B, in_channels, H, W), H and W at least 32 pixels.
            true_sizes (list[tuple[int, int]] | None): height and width of
                each image without padding, which then stays out of the
                attention, see `TrueSizeHook`. Defaults to None: all of x is
                image.

        Returns:
            tuple[Tensor]: (B, C_i, H_i, W_i) at strides 4, 8, 16, 32.
        """
        if true_sizes is None:
            return self._forward(x)
        sizes = [
            tuple(self._map_side(side, index) for side in x.shape[-2:])
            for index in self.out_indices
        ]
        return forward_true_sizes(
            self._forward, x, true_sizes, sizes, STRIDES[-1]
        )

    def _map_side(self, side: int, index: int) -> int:
        """Side of the map of stage `index` for a side of the image."""
        return -(-side // STRIDES[index])

    def _forward(self, x: Tensor) -> tuple[Tensor, ...]:
        check_image(x, min_side=STRIDES[-1])
        # With channels last, tokens are a view of the convolution's output.
        x = x.contiguous(memory_format=torch.channels_last)
        x, hw_shape = self.patch_embed(x)
        outputs = []
        for index, stage in enumerate(self.stages):
            x, hw_shape = stage(x, hw_shape)
            if index in self.out_indices:
                out = x
                if self.output_norm:
                    out = getattr(self, f'norm{index}')(out)
                outputs.append(tokens_to_output(out, hw_shape))
        return tuple(outputs)

    def train(self, mode: bool = True) -> 'HierarchicalBackbone':
        """Set the mode; frozen stages stay in evaluation mode."""
        super().train(mode)
        self._freeze()
        return self

    def _freeze(self) -> None:
        """Freeze what `frozen_stages` names, with mmdet's meaning."""
        frozen = []
        if self.frozen_stages >= 0:
            frozen.append(self.patch_embed)
            self.stages[0].drop.eval()
            if self.stages[0].pos_embed is not None:
                self.stages[0].pos_embed.requires_grad_(False)
        for index in range(min(self.frozen_stages, len(self.stages))):
            frozen.append(self.stages[index])
            if self.output_norm and index in self.out_indices:
                frozen.append(getattr(self, f'norm{index}'))
        for module in frozen:
            module.eval()
            module.requires_grad_(False)

    def _stage_channels(self) -> list[int]:
        dims = self.arch['embed_dims']
        if isinstance(dims, int):
            return [dims * 2**index for index in range(NUM_STAGES)]
        return list(dims)

    def _inline_depth(self, index: int) -> int:
        """Number of leading InLine blocks of a stage; all in PVT."""
        return self.arch.get('inline_depths', self.arch['depths'])[index]

    def _make_stage(
        self, index: int, drop_path_rate: float, with_cp: bool
    ) -> Stage:
        depths = self.arch['depths']
        channels = self.num_features[index]
        mlp_ratios = self.arch.get('mlp_ratios', (4,) * NUM_STAGES)
        # Linear in depth over the whole model, stages that aren't built too.
        # (On the CPU: the model may be built on the meta device.)
        rates = torch.linspace(0, drop_path_rate, sum(depths), device='cpu')
        first = sum(depths[:index])
        blocks = [
            Block(
                channels,
                self._make_attention(index, position),
                mlp_ratios[index],
                self.norm_eps,
                drop_rate=self.drop_rate,
                drop_path_rate=rates[first + position].item(),
                pool_input=(
                    self.pool_input and position < self._inline_depth(index)
                ),
                with_cp=with_cp,
            )
            for position in range(depths[index])
        ]
        grid = self.pretrain_img_size // STRIDES[index]
        return Stage(
            self._make_downsample(index) if index else None,
            blocks,
            (grid, grid) if self.position_tables else None,
            channels,
            # After the embedding, and wherever positions are added.
            self.drop_rate if self.position_tables or not index else 0.0,
        )

    def _make_attention(self, index: int, position: int) -> nn.Module:
        """Attention of block `position` of stage `index`."""
        if position < self._inline_depth(index):
            return self._make_linear_attention(index, position)
        return self._make_softmax_attention(index, position)

    def _make_linear_attention(self, index: int, position: int) -> nn.Module:
        sizes = self.num_features[index], self.arch['num_heads'][index]
        common = dict(
            drop_rate=self.drop_rate,
            window_size=self.window_size,
            shifted=position % 2 == 1,
        )
        if self.attention != 'inline':
            return LinearAttention(*sizes, self.attention, **common)
        return InLineAttention(*sizes, **self.inline_cfg, **common)

    def _make_softmax_attention(self, index: int, position: int) -> nn.Module:
        """Attention of a block that isn't InLine."""
        raise NotImplementedError

    def _make_patch_embed(self, in_channels: int) -> nn.Module:
        """(B, in_channels, H, W) to tokens and (H / 4, W / 4)."""
        raise NotImplementedError

    def _make_downsample(self, index: int) -> nn.Module:
        """Tokens and grid of stage `index` - 1 to those of `index`."""
        raise NotImplementedError

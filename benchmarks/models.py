"""What can be timed: backbones by name or config, attention layers by size."""

from importlib.util import find_spec
from pathlib import Path

from mmengine.hub import get_config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, DefaultScope
from torch import Tensor, nn
from torch.nn import functional as F

from inline_mm.engine.launch import HOSTS, read_config
from inline_mm.errors import LaunchError
from inline_mm.layers import InLineAttention
from inline_mm.models.variants import CSWIN, DEIT, PVT, SWIN

from .straightforward import StraightforwardAttention, make_straightforward

STRAIGHTFORWARD = ':straightforward'
FAMILIES = {
    'inline-pvt': ('InLinePVT', PVT),
    'inline-swin': ('InLineSwin', SWIN),
    'inline-cswin': ('InLineCSwin', CSWIN),
    'inline-deit': ('InLineDeiT', DEIT),
}


def _mmdet_swin(variant: str) -> dict:
    row = SWIN[variant]
    return dict(
        type='mmdet.SwinTransformer',
        embed_dims=row['embed_dims'],
        depths=row['depths'],
        num_heads=row['num_heads'],
    )


def _mmdet_pvt(variant: str) -> dict:
    # mmdet's defaults are the published heads, channels and reductions.
    return dict(
        type='mmdet.PyramidVisionTransformer',
        num_layers=list(PVT[variant]['depths']),
    )


# Our backbones and, as their baselines, mmdet's of the same depths.
NAMED = {
    **{
        f'{family}-{variant}': dict(type=kind, arch=variant)
        for family, (kind, table) in FAMILIES.items()
        for variant in table
    },
    **{f'swin-{v}': _mmdet_swin(v) for v in ('tiny', 'small', 'base')},
    **{f'pvt-{v}': _mmdet_pvt(v) for v in PVT},
}
# Names that a candidate of the layers' tables can have.
LAYERS = ('inline', 'straightforward', 'gemm2', 'softmax')


def build_backbone(name: str, with_cp: bool = False) -> nn.Module:
    """Builds a backbone with random weights.

    Args:
        name (str): a name of `NAMED` (built without stochastic depth), or a
            config whose model has a backbone: a file, the name of one that
            comes with the package, or 'mmdet::FOLDER/NAME.py' for one of a
            host (built as it says, without its weights). With
            ':straightforward' behind it, the blocks of a backbone of ours are
            replaced by `StraightforwardBlock`.
        with_cp (bool): recompute activations in the backward pass.
            Defaults to False.

    Returns:
        nn.Module: the backbone.

    Raises:
        LaunchError: if there is no such backbone or it can't be built.
    """
    plain = name.removesuffix(STRAIGHTFORWARD)
    if plain in NAMED:
        scope, cfg = 'mmengine', dict(NAMED[plain], drop_path_rate=0.0)
    else:
        scope, cfg = _read_config(plain)
    cfg['init_cfg'] = None
    if with_cp:
        cfg['with_cp'] = True
    if '.' in cfg['type']:
        _need_host(plain, cfg['type'].split('.')[0])
    try:
        with DefaultScope.overwrite_default_scope(scope):
            model = MODELS.build(cfg)
        if plain != name:
            make_straightforward(model)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise LaunchError(
            f'{name} can not be built: {error.args[0]}'
        ) from error
    return revert_sync_batchnorm(model)


def _read_config(name: str) -> tuple[str, dict]:
    """Scope and backbone of a config."""
    if not name.endswith('.py') and '::' not in name and '_' not in name:
        raise LaunchError(
            f'{name!r} is no backbone and no config; backbones are '
            f'{", ".join(NAMED)}'
        )
    if '::' in name:
        _need_host(name, name.split('::')[0])
        try:
            cfg = get_config(name)
        except (OSError, ValueError, AssertionError) as error:
            raise LaunchError(f'{name} can not be read: {error}') from None
    else:
        cfg = read_config(name)
    backbone = cfg.get('model', {}).get('backbone')
    if backbone is None:
        raise LaunchError(f'{name} has no model.backbone to be timed')
    return cfg.default_scope, backbone.to_dict()


def _need_host(name: str, host: str) -> None:
    if host not in HOSTS or find_spec(host) is None:
        raise LaunchError(
            f'{name} needs {host}, which is not installed; `make env` '
            'installs mmdet, mmseg and mmpretrain'
        )


def short_name(name: str) -> str:
    """A candidate's name as the tables have it: no folders, no '.py'."""
    suffix = STRAIGHTFORWARD if name.endswith(STRAIGHTFORWARD) else ''
    plain = name.removesuffix(suffix)
    return (Path(plain).stem if plain.endswith('.py') else plain) + suffix


class TwoGemms(nn.Module):
    """The two projections of an attention layer and nothing between.

    Args:
        layer (InLineAttention): whose parameters are used.
    """

    def __init__(self, layer: InLineAttention) -> None:
        super().__init__()
        self.qkv = layer.qkv
        self.proj = layer.proj

    def forward(self, x: Tensor, hw_shape: tuple[int, int]) -> Tensor:
        """(B, N, C) to (B, N, C)."""
        queries = self.qkv(x)[..., : x.shape[-1]]
        return F.linear(queries, self.proj.weight, self.proj.bias)


def build_layer(name: str, channels: int, heads: int) -> nn.Module:
    """Builds an attention layer with random weights.

    Args:
        name (str): 'inline' (ours), 'straightforward', 'gemm2' (`TwoGemms`)
            or 'softmax' (scaled_dot_product_attention between ours's
            projections, without a local residual).
        channels (int): C.
        heads (int): number of heads.

    Returns:
        nn.Module: maps (B, H * W, C) and (H, W) to (B, H * W, C).

    Raises:
        LaunchError: for another name, or heads that don't share the channels.
    """
    if name not in LAYERS:
        raise LaunchError(
            f'{name!r} is no attention layer, expected one of '
            f'{", ".join(LAYERS)}'
        )
    settings = {}
    if name == 'softmax':
        settings = dict(normalization='softmax', local_residual=False)
    try:
        layer = InLineAttention(channels, heads, **settings)
    except ValueError as error:
        raise LaunchError(str(error)) from None
    if name == 'straightforward':
        return StraightforwardAttention(layer)
    return TwoGemms(layer) if name == 'gemm2' else layer

"""Modules of the InLine backbones, on tokens (B, N, C) and their grid."""

from .attention import InLineAttention
from .block import Block
from .downsample import ConvDownsample, PatchMerging
from .linear_attention import LINEAR_ATTENTIONS, LinearAttention
from .position import resize_bias_table, resize_position_table
from .softmax import WindowAttention
from .stripes import StripeAttention
from .tokens import map_to_tokens, tokens_to_map, tokens_to_output
from .windows import WindowLayout

__all__ = [
    'LINEAR_ATTENTIONS',
    'Block',
    'ConvDownsample',
    'InLineAttention',
    'LinearAttention',
    'PatchMerging',
    'StripeAttention',
    'WindowAttention',
    'WindowLayout',
    'map_to_tokens',
    'resize_bias_table',
    'resize_position_table',
    'tokens_to_map',
    'tokens_to_output',
]

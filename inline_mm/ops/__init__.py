"""Pure functions of the InLine attention: no parameters, no state."""

from .attention import divide_attention, inline_attention, softmax_attention
from .local_residual import local_residual

__all__ = [
    'divide_attention',
    'inline_attention',
    'local_residual',
    'softmax_attention',
]

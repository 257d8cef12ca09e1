"""Pure functions of the InLine attention: no parameters, no state."""

from .attention import (
    divide_attention,
    inline_attention,
    softmax_attention,
)
from .folded import fold_inline_attention, token_moments
from .local_residual import local_residual

__all__ = [
    'divide_attention',
    'fold_inline_attention',
    'inline_attention',
    'local_residual',
    'softmax_attention',
    'token_moments',
]

"""Pure functions of the InLine blocks: no parameters, no state."""

from .attention import (
    divide_attention,
    inline_attention,
    softmax_attention,
)
from .feed_forward import feed_forward_in_chunks
from .folded import fold_inline_attention, token_moments
from .linear_attentions import (
    angular_attention,
    cosine_attention,
    efficient_attention,
    elu_attention,
    focused_attention,
    hydra_attention,
)
from .local_residual import local_residual

__all__ = [
    'angular_attention',
    'cosine_attention',
    'divide_attention',
    'efficient_attention',
    'elu_attention',
    'feed_forward_in_chunks',
    'focused_attention',
    'fold_inline_attention',
    'hydra_attention',
    'inline_attention',
    'local_residual',
    'softmax_attention',
    'token_moments',
]

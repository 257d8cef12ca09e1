"""In what precision statistics over tokens are taken."""

from contextlib import AbstractContextManager, nullcontext

import torch


def statistics_dtype(dtype: torch.dtype) -> torch.dtype:
    """Sums over tokens are taken in float32 at least (float64 stays)."""
    return torch.promote_types(dtype, torch.float32)


def without_autocast(device_type: str) -> AbstractContextManager:
    """No autocast; the meta device knows none."""
    if device_type == 'meta':
        return nullcontext()
    return torch.autocast(device_type, enabled=False)

"""The InLine backbones, registered in mmengine's root registry."""

from .inline_pvt import InLinePVT
from .inline_swin import InLineSwin

__all__ = ['InLinePVT', 'InLineSwin']

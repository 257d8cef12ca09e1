"""The InLine backbones, registered in mmengine's root registry."""

from .inline_cswin import InLineCSwin
from .inline_deit import InLineDeiT
from .inline_pvt import InLinePVT
from .inline_swin import InLineSwin
from .simple_pyramid import SimplePyramid

__all__ = [
    'InLineCSwin',
    'InLineDeiT',
    'InLinePVT',
    'InLineSwin',
    'SimplePyramid',
]

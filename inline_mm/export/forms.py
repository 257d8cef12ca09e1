"""Modules of the hosts in forms whose arithmetic an ONNX graph can hold.

A graph that fits every size has no branches on sizes and no numbers that were
counted while it was made. What is swapped here gives the same results.
"""

import torch
from mmcv.cnn.bricks.transformer import AdaptivePadding
from torch import Tensor, nn
from torch.nn import functional as F


class PadToMultiple(nn.Module):
    """Zeros at the right and bottom up to multiples of a stride.

    mmcv's `AdaptivePadding` in mode 'corner' where the kernel equals the
    stride, as in patch embeddings.

    Args:
        stride (tuple[int, int]): along height and width, in pixels.
    """

    def __init__(self, stride: tuple[int, int]) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to the padded one."""
        bottom, right = (
            (side + step - 1) // step * step - side
            for side, step in zip(x.shape[-2:], self.stride, strict=True)
        )
        return F.pad(x, (0, right, 0, bottom))


class MatrixPool(nn.Module):
    """`nn.AdaptiveAvgPool2d` as a product with a matrix along each axis.

    ONNX has no pooling whose windows depend on the size.

    Args:
        output_size (tuple[int, int]): height and width of the output.
    """

    def __init__(self, output_size: tuple[int, int]) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, C, *output_size)."""
        rows, columns = (
            self._means(side, count, x)
            for side, count in zip(x.shape[-2:], self.output_size, strict=True)
        )
        return rows @ x @ columns.mT

    @staticmethod
    def _means(side: int, count: int, like: Tensor) -> Tensor:
        """(count, side): line i averages the positions of window i."""
        index = torch.arange(count, device=like.device)[:, None]
        position = torch.arange(side, device=like.device)
        first = index * side // count
        last = ((index + 1) * side + count - 1) // count
        inside = ((position >= first) & (position < last)).to(like.dtype)
        return inside / inside.sum(1, keepdim=True)


class WholeUpsample(nn.Module):
    """mmseg's `Upsample` by a whole factor, without its detour over floats.

    Args:
        factor (int): of both sides.
        mode (str): as in `torch.nn.functional.interpolate`.
        align_corners (bool | None): likewise.
    """

    def __init__(
        self, factor: int, mode: str, align_corners: bool | None
    ) -> None:
        super().__init__()
        self.factor = factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, C, factor * H, factor * W)."""
        size = [self.factor * side for side in x.shape[-2:]]
        return F.interpolate(
            x, size, mode=self.mode, align_corners=self.align_corners
        )


def use_exportable_forms(model: nn.Module) -> None:
    """Swap, in place, the modules that have another form here.

    Args:
        model (nn.Module): the model; its parameters aren't touched.
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            form = _exportable_form(child)
            if form is not None:
                setattr(parent, name, form)


def _exportable_form(module: nn.Module) -> nn.Module | None:
    if isinstance(module, AdaptivePadding):
        whole = module.kernel_size == module.stride
        if module.padding == 'corner' and whole:
            return PadToMultiple(module.stride)
    elif isinstance(module, nn.AdaptiveAvgPool2d):
        size = module.output_size
        size = (size, size) if isinstance(size, int) else tuple(size)
        if None not in size and size != (1, 1):
            return MatrixPool(size)
    # By its name: this package doesn't import the hosts.
    elif type(module).__name__ == 'Upsample' and not module.size:
        factor = module.scale_factor
        if isinstance(factor, float) and factor.is_integer():
            return WholeUpsample(
                int(factor), module.mode, module.align_corners
            )
    return None

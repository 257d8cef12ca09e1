"""How a map is cut into windows: padding, cyclic shift, partition, and back.

Source: Liu et al., Swin Transformer (arXiv 2103.14030), section 3.2. Two
choices are ours (docs/design.md, section 3): a map that fits into one window
along an axis isn't shifted along it, and the windows of InLine blocks shrink
to the map, as at the pretraining size of every published model.

While a model is exported, sizes are symbolic: whether lines are padded or
shifted isn't known, so both are always done, by amounts that may be zero. A
model that is compiled always pads.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..compat import is_dynamo_compiling

# Added to the scores of pairs that the cyclic shift brought together.
MASKED = -100.0


@dataclass(frozen=True)
class WindowLayout:
    """The windows of one map.

    Args:
        hw_shape (tuple[int, int]): H and W of the map, in tokens.
        window (tuple[int, int]): height and width of a window, in tokens.
        shift (tuple[int, int]): cyclic shift up and to the left, in tokens.
            Defaults to none.
        centred (bool): pad on both sides, the odd line last, instead of
            right and bottom only. Defaults to False.
    """

    hw_shape: tuple[int, int]
    window: tuple[int, int]
    shift: tuple[int, int] = (0, 0)
    centred: bool = False

    @classmethod
    def fit(
        cls,
        hw_shape: tuple[int, int],
        window_size: int,
        shifted: bool,
        shrink: bool,
    ) -> 'WindowLayout':
        """Windows of `window_size` for a map of this size.

        Args:
            hw_shape (tuple[int, int]): H and W of the map, in tokens.
            window_size (int): side of a window, in tokens.
            shifted (bool): shift by half a window along each axis that holds
                more than one window.
            shrink (bool): cut the window to the map where the map is smaller
                (InLine blocks); otherwise the map is padded to one window
                (softmax blocks, whose position table has a fixed size).

        Returns:
            WindowLayout: the layout.
        """
        window = tuple(
            min(window_size, side) if shrink else window_size
            for side in hw_shape
        )
        shift = tuple(
            _half_window(side, size) if shifted else 0
            for side, size in zip(hw_shape, window, strict=True)
        )
        return cls(tuple(hw_shape), window, shift)

    @property
    def counts(self) -> tuple[int, int]:
        """Rows and columns of windows after padding."""
        # A window as long as the map is known to be one, at a symbolic size.
        return tuple(
            1 if size is side else (side + size - 1) // size
            for side, size in zip(self.hw_shape, self.window, strict=True)
        )

    @property
    def padding(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Lines of padding: (top, bottom), (left, right)."""
        pairs = []
        for side, size, count in zip(
            self.hw_shape, self.window, self.counts, strict=True
        ):
            total = count * size - side
            before = total // 2 if self.centred else 0
            pairs.append((before, total - before))
        return tuple(pairs)

    @property
    def is_shifted(self) -> bool:
        """Whether there is a shift, of no line perhaps if it is symbolic."""
        return any(isinstance(n, torch.SymInt) or n for n in self.shift)

    def split(self, x: Tensor) -> Tensor:
        """(B, H * W, C) to (B * windows, tokens of a window, C).

        Padding is zero; samples come first, then the windows of each in
        row-major order.
        """
        rows, columns = self.counts
        size_y, size_x = self.window
        batch, _, channels = x.shape
        x = x.reshape(batch, *self.hw_shape, channels)
        vertical, horizontal = self.padding
        if may_need_padding(*vertical, *horizontal):
            x = F.pad(x, (0, 0, *horizontal, *vertical))
        if self.is_shifted:
            x = _roll(x, (-self.shift[0], -self.shift[1]))
        x = x.reshape(batch, rows, size_y, columns, size_x, channels)
        return x.transpose(2, 3).reshape(-1, size_y * size_x, channels)

    def merge(self, windows: Tensor) -> Tensor:
        """The inverse of `split`, without the padding: (B, H * W, C)."""
        (height, width), (rows, columns) = self.hw_shape, self.counts
        size_y, size_x = self.window
        channels = windows.shape[-1]
        x = windows.reshape(-1, rows, columns, size_y, size_x, channels)
        x = x.transpose(2, 3).reshape(
            -1, rows * size_y, columns * size_x, channels
        )
        if self.is_shifted:
            x = _roll(x, self.shift)
        (top, _), (left, _) = self.padding
        x = x[:, top : top + height, left : left + width]
        return x.reshape(-1, height * width, channels)

    def shift_mask(self, device: torch.device) -> Tensor | None:
        """What the cyclic shift must keep apart, or None without a shift.

        Returns:
            Tensor: (windows, tokens, tokens) of 0 and `MASKED`, float32, to
            be added to the scores of the softmax.
        """
        if not self.is_shifted:
            return None
        rows, columns = (self._axis_labels(axis, device) for axis in (0, 1))
        regions = 3 * rows[:, None] + columns[None, :]
        unshifted = WindowLayout(tuple(regions.shape), self.window)
        regions = unshifted.split(regions.reshape(1, -1, 1)).squeeze(-1)
        apart = regions[:, None, :] != regions[:, :, None]
        return torch.zeros(apart.shape, device=device).masked_fill_(
            apart, MASKED
        )

    def _axis_labels(self, axis: int, device: torch.device) -> Tensor:
        """0, 1, 2 for the parts of an axis that aren't neighbours.

        Without a shift each window has one label, so that nothing is masked.
        """
        size, shift = self.window[axis], self.shift[axis]
        length = self.counts[axis] * size
        position = torch.arange(length, device=device)
        return (position >= length - size).long() + (
            position >= length - shift
        ).long()


def _half_window(side: int, size: int) -> int:
    """Half a window of `size` where the side holds several, else 0."""
    if isinstance(side, torch.SymInt):
        return size // 2 * torch.sym_min((side - 1) // size, 1)
    return size // 2 if side > size else 0


def _roll(x: Tensor, shift: tuple[int, int]) -> Tensor:
    """A cyclic shift down and to the right of (B, H, W, C)."""
    if not any(isinstance(lines, torch.SymInt) for lines in shift):
        return torch.roll(x, shift, (1, 2))
    for axis, lines in zip((1, 2), shift, strict=True):  # ONNX has no roll
        length = x.shape[axis]
        source = torch.arange(length, device=x.device) - lines
        source = torch.where(source < 0, source + length, source)
        source = torch.where(source < length, source, source - length)
        x = x.index_select(axis, source)
    return x


def may_need_padding(*lines: int) -> bool:
    """Whether any number of lines is, or at another size may be, not zero.

    Where a graph is made for many sizes, asking would tie it to those that
    give the same answer.
    """
    symbolic = any(isinstance(n, torch.SymInt) for n in lines)
    return symbolic or is_dynamo_compiling() or any(lines)

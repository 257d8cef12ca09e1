"""Window layouts: what is cut, shifted, padded and masked."""

import pytest
import torch

from inline_mm.layers import WindowAttention, WindowLayout


@pytest.mark.parametrize('hw_shape', [(1, 1), (7, 7), (5, 11), (14, 9)])
@pytest.mark.parametrize('shifted', [False, True])
@pytest.mark.parametrize('shrink', [False, True])
def test_merge_undoes_split(hw_shape, shifted, shrink):
    layout = WindowLayout.fit(hw_shape, 4, shifted, shrink)
    x = torch.randn(2, hw_shape[0] * hw_shape[1], 3)
    windows = layout.split(x)
    rows, columns = layout.counts
    tokens = layout.window[0] * layout.window[1]
    assert windows.shape == (2 * rows * columns, tokens, 3)
    assert torch.equal(layout.merge(windows), x)


def test_axes_that_fit_into_one_window_are_not_shifted():
    assert WindowLayout.fit((7, 7), 7, True, False).shift == (0, 0)
    assert WindowLayout.fit((4, 21), 7, True, False).shift == (0, 3)
    assert WindowLayout.fit((4, 21), 7, True, True).window == (4, 7)


def test_mask_keeps_apart_what_only_the_shift_brought_together():
    layout = WindowLayout.fit((6, 6), 3, True, False)
    mask = layout.shift_mask(torch.device('cpu'))
    ramp = torch.arange(36.0).reshape(1, 36, 1)
    windows = layout.split(ramp).squeeze(-1).long()
    rows, columns = windows // 6, windows % 6
    near = ((rows[:, :, None] - rows[:, None, :]).abs() < 3) & (
        (columns[:, :, None] - columns[:, None, :]).abs() < 3
    )
    assert torch.equal(mask == 0, near)


def test_no_token_sees_across_the_roll():
    """A change at the top of the map leaves the bottom row as it was."""
    torch.manual_seed(0)
    attention = WindowAttention(8, 2, window_size=4, shifted=True).eval()
    x = torch.randn(1, 64, 8)
    changed = x.clone()
    changed[:, :8] += 1
    difference = (attention(changed, (8, 8)) - attention(x, (8, 8))).abs()
    difference = difference.sum(-1).reshape(8, 8)
    assert (difference[:2] > 0).all()
    assert (difference[2:] == 0).all()

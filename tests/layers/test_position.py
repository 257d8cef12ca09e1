"""Position tables on other grids."""

import torch

from inline_mm.layers import resize_bias_table, resize_position_table


def test_same_grid_is_returned_as_it_is():
    table = torch.randn(1, 12, 4)
    same = resize_position_table(table, (3, 4), (3, 4), mode='bilinear')
    assert same is table


def test_equal_count_of_another_grid_is_resized():
    table = torch.randn(1, 16, 4)
    resized = resize_position_table(table, (4, 4), (2, 8), mode='bilinear')
    assert resized.shape == table.shape
    assert not torch.allclose(resized, table)


def test_a_plane_stays_a_plane_inside():
    """Bilinear resizing keeps a linear ramp, away from the borders."""
    rows, columns = torch.meshgrid(
        torch.arange(8.0), torch.arange(6.0), indexing='ij'
    )
    table = (rows + 10 * columns).reshape(1, 48, 1)
    big = resize_position_table(table, (8, 6), (16, 12), mode='bilinear')
    big = big.reshape(16, 12)
    want_row = (torch.arange(16.0) + 0.5) / 2 - 0.5
    want_column = (torch.arange(12.0) + 0.5) / 2 - 0.5
    want = want_row[:, None] + 10 * want_column[None, :]
    torch.testing.assert_close(big[1:-1, 1:-1], want[1:-1, 1:-1])


def test_prefix_entries_are_kept():
    table = torch.randn(1, 1 + 9, 4)
    resized = resize_position_table(
        table, (3, 3), (5, 2), mode='bicubic', num_prefix_tokens=1
    )
    assert resized.shape == (1, 11, 4)
    assert torch.equal(resized[:, 0], table[:, 0])


def test_bias_tables_follow_the_window():
    table = torch.randn(13 * 13, 3)
    assert resize_bias_table(table, 7) is table
    resized = resize_bias_table(table, 12)
    assert resized.shape == (23 * 23, 3)
    # The centre, offset zero, stays the centre; heads aren't mixed.
    torch.testing.assert_close(resized[264], table[84], rtol=0.05, atol=0.05)

"""The cost of an InLine block is linear in the number of tokens."""

import torch
from torch.profiler import ProfilerActivity, profile

from inline_mm.layers import Block, InLineAttention


def peak_bytes(function):
    """Most memory that `function` holds at once beyond what was there."""
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True
    ) as record:
        function()
    held = peak = 0
    for event in record.profiler.kineto_results.events():
        if event.name() == '[memory]':
            held += event.nbytes()
            peak = max(peak, held)
    return peak


def peak_of_block(side):
    """Peak of a forward and backward pass on a side x side map, bytes."""
    torch.manual_seed(0)
    attention = InLineAttention(16, 2)
    block = Block(16, attention, mlp_ratio=4, norm_eps=1e-5)
    x = torch.randn(1, side * side, 16, requires_grad=True)
    return peak_bytes(lambda: block(x, (side, side)).sum().backward())


def test_peak_memory_grows_with_the_tokens_not_their_square():
    small, large = peak_of_block(24), peak_of_block(48)
    # An N x N float32 tensor would be 1.3 MB, then 21 MB.
    assert small > 24 * 24 * 64 * 4, 'the measure misses the hidden layer'
    assert large < 4.2 * small
    assert large < 48**4


def test_the_measure_sees_quadratic_cost():
    """The same measurement on weights that exist, N x N for two heads."""
    x = torch.randn(1, 2, 24 * 24, 8)
    peak = peak_bytes(lambda: (x @ x.transpose(2, 3)).softmax(-1) @ x)
    assert peak > 2 * 24**4 * 4

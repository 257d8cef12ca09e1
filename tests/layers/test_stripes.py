"""Striped attention against its definition, stripe by stripe."""

import pytest
import torch
from torch.nn import functional as F

from inline_mm.layers import StripeAttention


def cut(x, axis, lines):
    """Lines of x (H, W, C) along an axis, zero where there are none."""
    size = x.shape[axis]
    empty = torch.zeros_like(x.select(axis, 0))
    return torch.stack(
        [x.select(axis, n) if 0 <= n < size else empty for n in lines], axis
    )


def attend(q, k, v, lepe, heads):
    """Softmax attention and LePE inside one stripe (h, w, C)."""
    shape = q.shape
    q, k, v = (x.reshape(-1, heads, shape[2] // heads) for x in (q, k, v))
    scores = torch.einsum('ihd,jhd->hij', q, k) * q.shape[-1] ** -0.5
    out = torch.einsum('hij,jhd->ihd', scores.softmax(-1), v).reshape(shape)
    grid = v.reshape(1, *shape).permute(0, 3, 1, 2)
    local = F.conv2d(grid, lepe.weight, lepe.bias, padding=1, groups=shape[2])
    return out + local[0].permute(1, 2, 0)


def reference(module, x, hw_shape, width, num_heads):
    """`StripeAttention` for one sample, by its definition."""
    axes = (1, 0) if width else (0,)
    q, k, v = module.qkv(x[0]).reshape(*hw_shape, -1).chunk(3, -1)
    outputs = []
    for branch, axis in enumerate(axes):
        parts = [t.chunk(len(axes), -1)[branch] for t in (q, k, v)]
        side = hw_shape[axis]
        step = width or side
        count = -(-side // step)
        before = (count * step - side) // 2
        stripes = []
        for index in range(count):
            lines = range(index * step - before, (index + 1) * step - before)
            stripe = [cut(part, axis, lines) for part in parts]
            stripes.append(
                attend(*stripe, module.lepe[branch], num_heads // len(axes))
            )
        out = torch.cat(stripes, axis)
        outputs.append(out.narrow(axis, before, side))
    return module.proj(torch.cat(outputs, -1)).reshape(x.shape)


@pytest.mark.parametrize('width', [1, 4, None])
@pytest.mark.parametrize(
    'hw_shape', [(8, 8), (4, 4), (5, 9), (7, 2), (3, 1), (1, 1)], ids=str
)
def test_equals_the_definition_at_any_size(hw_shape, width):
    """Maps that stripes don't divide, and smaller than one stripe, too."""
    torch.manual_seed(0)
    module = StripeAttention(16, 4, width).double()
    x = torch.randn(2, hw_shape[0] * hw_shape[1], 16).double()
    want = [reference(module, one[None], hw_shape, width, 4) for one in x]
    torch.testing.assert_close(
        module(x, hw_shape), torch.cat(want), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(('heads', 'width'), [(3, None), (3, 7), (1, 7)])
def test_heads_must_fit_channels_and_branches(heads, width):
    with pytest.raises(ValueError, match=f'got {heads} heads for 16'):
        StripeAttention(16, heads, width)

"""The local residual has a second form for exported graphs."""

import pytest
import torch

from inline_mm.ops import local_residual
from inline_mm.ops.local_residual import shifted_local_residual


@pytest.mark.parametrize('hw_shape', [(1, 1), (1, 5), (4, 7)], ids=str)
@pytest.mark.parametrize('batch', [1, 3])
def test_both_forms_are_equal_in_values_and_gradients(batch, hw_shape):
    torch.manual_seed(0)
    tokens = hw_shape[0] * hw_shape[1]
    values = torch.randn(batch, tokens, 6, dtype=torch.float64)
    kernels = torch.randn(batch, 6, 9, dtype=torch.float64)
    weight = torch.randn(batch, tokens, 6, dtype=torch.float64)
    results = []
    for form in (local_residual, shifted_local_residual):
        inputs = [values.clone().requires_grad_(), kernels.clone()]
        inputs[1].requires_grad_()
        out = form(*inputs, hw_shape)
        gradients = torch.autograd.grad((out * weight).sum(), inputs)
        results.append([out, *gradients])
    for left, right in zip(*results, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)

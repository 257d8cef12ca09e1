"""torch.compile sees a backbone whole."""

import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS

import inline_mm  # noqa: F401


@pytest.mark.parametrize('name', ARCHS)
def test_one_graph_with_equal_outputs(name):
    torch.manual_seed(0)
    model = MODELS.build(dict(type=name, arch=ARCHS[name])).eval()
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True)
    x = torch.randn(1, 3, 64, 96)
    with torch.no_grad():
        pairs = zip(compiled(x), model(x), strict=True)
    for left, right in pairs:
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)

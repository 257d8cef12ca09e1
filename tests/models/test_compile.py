"""torch.compile sees a backbone whole, at any size."""

import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS
from torch._dynamo.testing import CompileCounter

import inline_mm  # noqa: F401

# Sides whose maps are padded to windows or not, each of several windows.
SIZES = [(128, 160), (160, 128), (161, 195), (192, 224), (130, 256)]


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def build(name, **options):
    torch.manual_seed(0)
    # Dropped paths are drawn anew in each pass.
    return MODELS.build(dict(type=name, drop_path_rate=0.0, **options))


def shallow(name):
    """One block of each kind, or two where windows are shifted."""
    arch = dict(ARCHS[name])
    if name == 'InLineDeiT':
        arch['depth'] = 1
    elif name == 'InLinePVT':
        arch['depths'] = (1, 1, 1, 1)
    else:
        depths = (1, 1, 2, 1) if name == 'InLineSwin' else (1, 1, 1, 1)
        arch.update(depths=depths, inline_depths=(1, 0, 0, 0))
    return arch


def assert_close(outputs, wanted):
    for out, want in zip(outputs, wanted, strict=True):
        torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ARCHS)
def test_one_graph_with_equal_outputs(name):
    model = build(name, arch=ARCHS[name]).eval()
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True)
    x = torch.randn(1, 3, 64, 96)
    with torch.no_grad():
        assert_close(compiled(x), model(x))


@pytest.mark.parametrize('name', ARCHS)
def test_one_graph_with_equal_gradients(name):
    model = build(name, arch=shallow(name)).train()
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True)
    results = []
    for function in (compiled, model):
        outputs = function(torch.ones(2, 3, 64, 96).cumsum(-1) / 96)
        loss = sum((out * out).mean() for out in outputs)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        results.append([*outputs, *gradients])
    assert_close(*results)


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(
            name, marks=() if name == 'InLineDeiT' else pytest.mark.heavy
        )
        for name in ARCHS
    ],
)
def test_sizes_share_graphs(name):
    """One for the first size, one for any, few for what a size changes."""
    model = build(name, arch=shallow(name)).train()
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    for size in SIZES:
        x = torch.randn(2, 3, *size)
        assert_close(compiled(x), model(x))
    assert counter.frame_count <= 4

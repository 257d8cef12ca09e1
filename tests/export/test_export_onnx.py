"""ONNX files: equal to torch, self-describing, and none when they aren't."""

import json

import onnx
import pytest
import torch
from forked import run_script
from mmcv.cnn.bricks.transformer import AdaptivePadding
from mmengine.config import Config, DictAction
from small_archs import ARCHS
from tiny import OPTIONS, SEG, TOOLS, build_model
from torch import nn
from torch.nn import functional as F

from inline_mm.engine.launch import read_config
from inline_mm.errors import LaunchError
from inline_mm.export import graph as onnx_graph
from inline_mm.export import run as export
from inline_mm.export.forms import (
    MatrixPool,
    PadToMultiple,
    WholeUpsample,
    use_exportable_forms,
)
from inline_mm.export.parts import ExportPart

MODEL_OPTIONS = [o for o in OPTIONS[SEG] if o.startswith('model.')]
SMALL_SEG = {
    key: DictAction._parse_iterable(value)
    for key, value in (option.split('=', 1) for option in MODEL_OPTIONS)
}
# Weights large enough for every part to show in the outputs.
LIVELY = dict(type='Normal', layer=['Linear', 'Conv1d', 'Conv2d'], std=0.2)


def backbone_config(name, **options):
    """A config with nothing but a small backbone."""
    backbone = dict(type=name, arch=ARCHS[name], init_cfg=LIVELY) | options
    return Config(
        dict(default_scope='mmpretrain', model=dict(backbone=backbone))
    )


def metadata(path):
    return {p.key: p.value for p in onnx.load(path).metadata_props}


def least(name):
    """One block of each kind, and a shifted one in Swin."""
    arch = dict(ARCHS[name])
    options = dict(arch=arch)
    if name == 'InLineDeiT':
        arch['depth'] = 1
    elif name == 'InLinePVT':
        arch['depths'] = (1, 1, 1, 1)
        options['out_indices'] = (0, 1)
    elif name == 'InLineSwin':
        arch.update(depths=(1, 2, 1, 1), inline_depths=(1, 0, 0, 0))
        options['out_indices'] = (0, 1)
    else:
        arch.update(depths=(1, 1, 1, 1), inline_depths=(1, 0, 0, 0))
        options['out_indices'] = (1,)
    return options


@pytest.mark.parametrize(
    'name',
    [
        'InLineDeiT',
        pytest.param('InLineSwin', marks=pytest.mark.heavy),
        pytest.param('InLinePVT', marks=pytest.mark.heavy),
        pytest.param('InLineCSwin', marks=pytest.mark.heavy),
    ],
)
def test_backbone_at_any_batch_and_size(name, tmp_path):
    out = tmp_path / 'backbone.onnx'
    options = least(name)
    done = export.export_onnx(
        backbone_config(name, **options), out, part='backbone'
    )
    # Batches of 1 to 3; below a window, and sides that nothing divides.
    assert list(done.deviations) == [(1, 224, 288), (2, 32, 48), (3, 61, 127)]
    assert max(done.deviations.values()) < 1e-4
    graph = onnx.load(out).graph
    assert axes(graph.input[0]) == ['batch', 3, 'height', 'width']
    count = len(options.get('out_indices', (0,)))
    assert [o.name for o in graph.output] == [f'map{i}' for i in range(count)]
    assert not grouped_by_batch(graph)


@pytest.mark.heavy
@pytest.mark.parametrize('fixed', [None, (64, 80)], ids=str)
@pytest.mark.parametrize('name', ARCHS)
def test_deeper_backbone(name, fixed, tmp_path):
    export.export_onnx(
        backbone_config(name),
        tmp_path / 'backbone.onnx',
        part='backbone',
        fixed=fixed,
    )


def axes(value):
    """Sizes of an input or output, names where they are free."""
    shape = value.type.tensor_type.shape
    return [axis.dim_param or axis.dim_value for axis in shape.dim]


def grouped_by_batch(graph):
    """Convolutions whose kernels are computed, as those of each sample."""
    constants = {tensor.name for tensor in graph.initializer}
    return [
        node.name
        for node in graph.node
        if node.op_type == 'Conv' and node.input[1] not in constants
    ]


def test_segmentor_by_the_tool(tmp_path):
    cfg = read_config(SEG, SMALL_SEG)
    model = build_model(cfg)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'own.pth')
    done = run_script(
        tmp_path,
        TOOLS / 'export_onnx.py',
        SEG,
        'own.pth',
        *('--out', 'out.onnx', '--fixed', '64', '96', '--cfg-options'),
        *MODEL_OPTIONS,
    )
    assert done.returncode == 0, done.output
    assert 'batch 3 of 64x96: ONNX Runtime and torch differ' in done.output
    assert 'argmax' in done.output
    assert done.output.endswith('wrote out.onnx for images of size: 64x96\n')
    assert 'init_weights' not in done.output
    found = metadata(tmp_path / 'out.onnx')
    assert found['config'] == SEG
    assert found['weights'] == 'own.pth'
    assert found['size'] == '64x96'
    assert found['channel_order'] == 'RGB'
    assert json.loads(found['mean']) == [123.675, 116.28, 103.53]
    assert json.loads(found['std']) == [58.395, 57.12, 57.375]
    assert len(json.loads(found['classes'])) == 150
    assert found['producer'].startswith('inline_mm ')
    graph = onnx.load(tmp_path / 'out.onnx').graph
    assert axes(graph.input[0]) == ['batch', 3, 64, 96]
    assert axes(graph.output[0]) == ['batch', 150, 64, 96]
    # Nothing of the machine it was made on.
    assert b'site-packages' not in (tmp_path / 'out.onnx').read_bytes()


@pytest.mark.heavy
def test_segmentor_at_any_size(tmp_path):
    out = tmp_path / 'segmentor.onnx'
    export.export_onnx(read_config(SEG, SMALL_SEG), out)
    assert metadata(out)['size'] == 'any'
    (logits,) = onnx.load(out).graph.output
    assert axes(logits) == ['batch', 150, 'height', 'width']


@pytest.mark.heavy
def test_classifier_at_any_size(tmp_path):
    out = tmp_path / 'classifier.onnx'
    cfg = read_config('inline-pvt-tiny_8xb128_in1k')
    cfg.model.backbone.init_cfg = None
    export.export_onnx(cfg, out)
    assert len(json.loads(metadata(out)['classes'])) == 1000
    (logits,) = onnx.load(out).graph.output
    assert axes(logits) == ['batch', 1000]


@pytest.mark.heavy
def test_detector_is_exported_up_to_its_neck(tmp_path):
    cfg = read_config('mask-rcnn_inline-pvt-t_fpn_1x_coco')
    cfg.model.backbone.init_cfg = None
    out = tmp_path / 'detector.onnx'
    done = export.export_onnx(cfg, out)
    assert 'heads, RoIAlign and NMS of the detector are not' in done.content
    assert len(onnx.load(out).graph.output) == 5
    assert 'classes' not in metadata(out)


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['--out=a.txt'], ['--out must end with .onnx', "'a.txt'"]),
        (['--out=none/a.onnx'], ['no folder none']),
        (['none.pth', '--out=a.onnx'], ['none.pth']),
        (['other.pth', '--out=a.onnx'], ['fills 0 of', "'backbone."]),
        (
            ['--out=a.onnx', '--cfg-options', 'model.backbone.arch=huge'],
            ["'tiny'", "got 'huge'"],
        ),
    ],
    ids=str,
)
def test_tool_refuses(tmp_path, arguments, words):
    torch.save(
        dict(state_dict={'other': torch.zeros(1)}), tmp_path / 'other.pth'
    )
    before = set(tmp_path.iterdir())
    done = run_script(tmp_path, TOOLS / 'export_onnx.py', SEG, *arguments)
    assert done.returncode == 1
    assert 'Traceback' not in done.output
    for word in words:
        assert word in done.output.splitlines()[-1]
    assert {p.name for p in set(tmp_path.iterdir()) - before} == {'output.log'}


@pytest.mark.parametrize('attention', ['inline', 'elu'])
def test_windows_that_shrink_need_a_fixed_size(attention, tmp_path):
    cfg = backbone_config('InLinePVT', window_size=7, attention=attention)
    with pytest.raises(LaunchError, match=r'window_size=7.*--fixed'):
        export.export_onnx(cfg, tmp_path / 'a.onnx', part='backbone')


def test_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(
        export, 'find_spec', lambda name: None if name == 'onnx' else name
    )
    with pytest.raises(LaunchError, match=r'pip install onnx$'):
        export.export_onnx(Config(), tmp_path / 'a.onnx')


def toy_part(function):
    return ExportPart(nn.Conv2d(3, 3, 1), function, 'map', 'a toy').eval()


def test_sizes_are_divided_rounding_down(tmp_path):
    """The exporter's own division rounds -33 // 2 to -16."""

    def pad(images):
        extra = -(-images.shape[2] // 2) - images.shape[2] // 2
        return F.pad(images, (0, 0, 0, extra))

    part = toy_part(pad)
    program, names = onnx_graph.trace(part, None)
    assert names == ['map0']
    onnx_graph.write_verified(
        program, tmp_path / 'a.onnx', {}, part, ((1, 33, 40), (2, 48, 40))
    )


@pytest.mark.parametrize('disturb', ['values', 'shape'])
def test_a_file_that_deviates_is_not_kept(tmp_path, disturb):
    part = toy_part(lambda images: images * 2)
    program, _ = onnx_graph.trace(part, None)
    part.function = dict(
        values=lambda images: images * 2.01, shape=lambda images: images[:1]
    )[disturb]
    out = tmp_path / 'a.onnx'
    out.write_text('an earlier file')
    with pytest.raises(LaunchError, match=r'batch of 2.*nothing was written'):
        onnx_graph.write_verified(program, out, {}, part, ((2, 8, 8),))
    assert out.read_text() == 'an earlier file'
    assert list(tmp_path.iterdir()) == [out]


def test_a_model_that_fixes_its_size_is_refused():
    part = toy_part(lambda images: images * float(int(images.shape[2])))
    with pytest.raises(LaunchError, match=r'free size.*--fixed'):
        onnx_graph.trace(part, None)


@pytest.mark.parametrize('size', [(1, 1), (4, 9), (7, 5), (16, 13)], ids=str)
def test_forms_are_equal(size):
    x = torch.randn(2, 3, *size)
    upsample = nn.Upsample(
        scale_factor=2, mode='bilinear', align_corners=False
    )
    pairs = [
        (nn.AdaptiveAvgPool2d((2, 3)), MatrixPool),
        (AdaptivePadding(4, 4, padding='corner'), PadToMultiple),
        (upsample, WholeUpsample),
    ]
    for module, form in pairs:
        model = nn.Sequential(module)
        wanted = model(x)
        use_exportable_forms(model)
        assert type(model[0]) is form
        torch.testing.assert_close(model(x), wanted)

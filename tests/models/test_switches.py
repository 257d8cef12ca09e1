"""The ablation switches in every family: dense maps, classifiers, configs."""

import copy
from pathlib import Path

import pytest
import torch
from mmengine.config import DictAction
from mmengine.registry import MODELS
from recipes import load
from small_archs import ARCHS, HIERARCHICAL, output_grids
from tiny import build_model

from inline_mm.compare import published
from inline_mm.engine.launch import read_config, shipped_configs
from inline_mm.layers import InLineAttention
from inline_mm.layers.attention import NORMALIZATIONS
from inline_mm.layers.kernels import KERNELS

README = Path(__file__).parents[2] / 'README.md'
SWITCHES = [
    {},
    *(dict(kernel=name) for name in KERNELS if name != 'identity'),
    dict(normalization='divide'),
    dict(normalization='softmax'),
    dict(kernel='relu', normalization='divide'),
    dict(kernel='affine_relu', normalization='divide', local_residual=False),
    dict(kernel='normalized_relu', normalization='softmax'),
    dict(local_residual=False),
    *(dict(window_size=size) for size in (7, 14, 28, 56)),
]
CHOICES = [
    pytest.param(
        name, options, id=f'{name} {" ".join(map(str, options.values()))}'
    )
    for name in ARCHS
    for options in SWITCHES
    if name in HIERARCHICAL or 'window_size' not in options
]
CLASSIFIERS = {
    'InLinePVT': 'inline-pvt-tiny_8xb128_in1k',
    'InLineSwin': 'inline-swin-tiny_8xb128_in1k',
    'InLineCSwin': 'inline-cswin-tiny_8xb128_in1k',
    'InLineDeiT': 'inline-deit-tiny_8xb128_in1k',
}
# 58 x 9 tokens in the first stage: more than a window of 56 along one axis.
SIZE = (232, 36)


def image(batch=1, size=SIZE):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, 3, *size, generator=generator)


def perturb(model):
    """Weights away from their flat start, where all weights look alike."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(0.05 * noise)
    return model


def build(name, **options):
    torch.manual_seed(0)
    options = dict(arch=ARCHS[name], drop_path_rate=0.0, **options)
    return perturb(MODELS.build(dict(type=name, **options)))


def assert_every_parameter_has_a_gradient(model, behind='none'):
    """One that isn't zero, but for what lies behind all that is used."""
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.any() != key.startswith(behind), key


@pytest.fixture(scope='module')
def published_maps():
    """The published model of each family, and its maps."""
    models = {name: build(name).eval() for name in ARCHS}
    with torch.no_grad():
        return {
            name: (model.state_dict(), model(image()))
            for name, model in models.items()
        }


@pytest.mark.parametrize(('name', 'options'), CHOICES)
def test_dense_maps(name, options, published_maps):
    state, plain = published_maps[name]
    model = build(name, **options)
    # Same weights: what differs is the switch.
    model.load_state_dict(state, strict=False)
    outputs = model(image())
    grids = output_grids(name, SIZE)
    for out, channels, grid in zip(
        outputs, model.num_features, grids, strict=True
    ):
        assert out.shape == (1, channels, *grid)
        assert out.isfinite().all()
    same = [
        torch.allclose(out, want, rtol=1e-4, atol=1e-5)
        for out, want in zip(outputs, plain, strict=True)
    ]
    assert all(same) == (not options)
    sum((out * out).mean() for out in outputs).backward()
    assert_every_parameter_has_a_gradient(model)


def test_deit_has_no_windows():
    """The class token fits into none."""
    with pytest.raises(TypeError, match='window_size'):
        build('InLineDeiT', window_size=7)


@pytest.fixture(scope='module')
def recipes():
    """Reading one takes as long as a test."""
    return {name: load(recipe) for name, recipe in CLASSIFIERS.items()}


@pytest.mark.parametrize(('name', 'options'), CHOICES)
def test_classifiers(name, options, recipes):
    """The shipped recipe's model, with a small backbone."""
    from mmpretrain.structures import DataSample

    torch.manual_seed(0)
    cfg = copy.deepcopy(recipes[name])
    cfg.model.backbone.update(arch=ARCHS[name], drop_path_rate=0.0, **options)
    channels = {'InLinePVT': 64, 'InLineDeiT': 32}.get(name, 128)
    cfg.model.head.update(in_channels=channels, num_classes=5)
    cfg.model.data_preprocessor = dict(cfg.data_preprocessor, num_classes=5)
    cfg.model.train_cfg = None
    model = perturb(build_model(cfg))
    samples = [DataSample().set_gt_label(label) for label in (0, 3)]
    images = image(2, (64, 32))
    assert model(images, mode='tensor').shape == (2, 5)
    losses = model(images, samples, mode='loss')
    losses['loss'].backward()
    # The class token has no local residual, and is all that leaves.
    last = 'backbone.blocks.3.attn.kernel_predictor.'
    assert_every_parameter_has_a_gradient(model, behind=last)


def ablations():
    """Paper's number, config and options of each row of the README's table."""
    text = README.read_text(encoding='utf-8')
    _, *sections = text.split("### The paper's ablations")
    lines = ''.join(sections).split('\n#')[0].splitlines()
    for line in lines:
        cells = [cell.strip(' `') for cell in line.split('|')[1:-1]]
        if len(cells) == 4 and cells[2] in shipped_configs():
            yield cells[1], cells[2], cells[3].split()


def test_the_readme_has_the_rows_of_the_paper():
    rows = list(ablations())
    settings = {(config, *options) for _, config, options in rows}
    assert len(rows) == len(settings) >= 20
    used = {option.split('=')[1] for *_, options in rows for option in options}
    assert used >= {'7', '14', '28', '56', 'divide', 'False'}
    assert used >= set(KERNELS) - {'identity'}


def test_the_readme_has_the_numbers_of_the_paper():
    shown = []
    for number, config, options in ablations():
        given = {}
        for option in options:
            key, value = option.removeprefix('model.backbone.').split('=')
            given[key] = {'False': False}.get(value, value)
            if value.isdigit():
                given[key] = int(value)
        known = published.ablation(config, given)
        assert number[:4] == ('' if known is None else f'{known:.1f}')
        shown.append((config, given))
    for row in published.ablations():
        assert (row['config'], row['options']) in shown


@pytest.mark.parametrize(
    ('config', 'options'), [row[1:] for row in ablations()], ids=str
)
def test_rows_of_the_paper_build(config, options):
    """As the launchers read the options; every InLine block obeys."""
    cfg = read_config(config, list(options))
    backbone = cfg.model.backbone
    for key, value in (option.split('=', 1) for option in options):
        found = backbone[key.removeprefix('model.backbone.')]
        assert found == DictAction._parse_iterable(value)
    cfg.model.data_preprocessor = cfg.data_preprocessor
    with torch.device('meta'):
        model = build_model(cfg)
    layers = [m for m in model.modules() if isinstance(m, InLineAttention)]
    assert layers or 'cswin-tiny' in config
    wanted = NORMALIZATIONS[backbone.get('normalization', 'subtract')]
    residual = backbone.get('local_residual', True)
    for layer in layers:
        kernel = KERNELS[backbone.get('kernel', 'identity')](4)
        assert type(layer.kernel) is type(kernel)
        assert layer.attend is wanted
        assert (layer.kernel_predictor is not None) == residual
        assert layer.window_size == backbone.get('window_size')

"""ONNX files of backbones, segmentors, classifiers and detectors' necks.

Made by torch's exporter of `torch.export` programs: unlike tracing it keeps
sizes symbolic, and says so where it can't. A file is written only after ONNX
Runtime has agreed with torch on random images.
"""

import json
import os
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from pathlib import Path

import torch
import torch.export
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DATASETS, MODELS, init_default_scope
from torch import nn

from ..checkpoint import check_checkpoint, describe_init
from ..checkpoint.reading import read_file
from ..engine.testing import check_complete
from ..errors import LaunchError
from ..layers import InLineAttention, LinearAttention
from ..version import __version__
from .forms import use_exportable_forms
from .graph import quiet, trace, write_verified
from .parts import ExportPart, backbone_part, whole_part

PACKAGES = ('onnx', 'onnxruntime', 'onnxscript')
# Batch, height and width of the images of a check at free sizes: more than
# one window of any stage; maps smaller than a window, down to one token;
# sides that no stride divides.
CHECKED = ((1, 224, 288), (2, 32, 48), (3, 61, 127))


@dataclass(frozen=True)
class Exported:
    """A file that was written.

    Args:
        path (Path): the file.
        content (str): what its outputs are, and what is left out.
        size (str): sizes of images that it takes.
        weights (str): where its weights come from.
        deviations (dict): for each (batch, height, width) that was checked,
            the largest difference between ONNX Runtime and torch, relative to
            the largest value of the output.
    """

    path: Path
    content: str
    size: str
    weights: str
    deviations: dict[tuple[int, int, int], float]


def export_onnx(
    cfg: Config,
    out: str | Path,
    checkpoint: str | None = None,
    part: str = 'whole',
    fixed: tuple[int, int] | None = None,
) -> Exported:
    """Export the model of a config, and check the file.

    The batch is free in any case. Images are expected normalised; the file's
    metadata says how.

    Args:
        cfg (Config): config of a detector, a segmentor or a classifier.
        out (str | Path): the file to write, ending with '.onnx'.
        checkpoint (str | None): weights: a checkpoint of the whole model, or
            for the backbone anything that `InLinePretrained` takes. Defaults
            to None, what the config's init_cfg names, the rest random.
        part (str): 'whole' or 'backbone'. Defaults to 'whole'.
        fixed (tuple[int, int] | None): the one height and width of images
            that the file takes. Defaults to None: any.

    Returns:
        Exported: what was written.

    Raises:
        LaunchError: in one sentence, why nothing was written.
        CheckpointError: likewise, about the weights.
    """
    path = _check(out)
    init_default_scope(cfg.default_scope)
    if part == 'backbone':
        exported, weights = _build_backbone(cfg, checkpoint)
    else:
        exported, weights = _build_whole(cfg, checkpoint)
    exported.eval().requires_grad_(False)
    if fixed is None:
        _refuse_free_size(exported)
        checked = CHECKED
    else:
        checked = tuple((batch, *fixed) for batch in (1, 2, 3))
    use_exportable_forms(exported.model)
    program, names = trace(exported, fixed)
    metadata = {
        'producer': f'inline_mm {__version__}',
        'config': Path(cfg.filename or 'unnamed').stem,
        'part': part,
        'outputs': exported.content,
        'weights': weights,
        'size': 'any' if fixed is None else f'{fixed[0]}x{fixed[1]}',
        **_describe_input(cfg),
    }
    if names == ['logits']:
        metadata.update(_describe_classes(cfg, program))
    deviations = write_verified(program, path, metadata, exported, checked)
    return Exported(
        path, exported.content, metadata['size'], weights, deviations
    )


def _check(out: str | Path) -> Path:
    # Sizes stay free with the help of this; it came after dynamic shapes.
    wanted = 'prefer_deferred_runtime_asserts_over_guards'
    if wanted not in signature(torch.export.export).parameters:
        raise LaunchError(
            f'the exporter of torch {torch.__version__} is too old; torch '
            '2.10 was tried: export there, from the same checkpoint'
        )
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise LaunchError(
            f'{", ".join(missing)} not installed; pip install '
            f'{" ".join(missing)}'
        )
    path = Path(out).expanduser()
    if path.suffix != '.onnx':
        raise LaunchError(f'--out must end with .onnx, got {os.fspath(out)!r}')
    if not path.parent.is_dir():
        raise LaunchError(f'there is no folder {path.parent} for --out')
    return path


def _build_backbone(
    cfg: Config, checkpoint: str | None
) -> tuple[ExportPart, str]:
    settings = cfg.model.backbone.copy()
    if checkpoint is not None:
        settings.init_cfg = dict(
            type='InLinePretrained', checkpoint=checkpoint
        )
    backbone = _build(settings)
    with quiet():  # it would name every parameter
        backbone.init_weights()
    return backbone_part(backbone), describe_init(backbone)


def _build_whole(
    cfg: Config, checkpoint: str | None
) -> tuple[ExportPart, str]:
    model = revert_sync_batchnorm(_build(cfg.model))
    if checkpoint is None:
        with quiet():  # it would name every parameter
            model.init_weights()
        weights = f'random; backbone: {describe_init(model.backbone)}'
    else:
        path = Path(checkpoint).expanduser()
        check_checkpoint(path)
        content, _ = read_file(path)
        model.load_state_dict(check_complete(model, content))
        weights = path.name
    return whole_part(model, cfg), weights


def _build(settings: dict) -> nn.Module:
    try:
        with quiet():
            return MODELS.build(settings)
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchError(
            f'the model can not be built: {error.args[0]}'
        ) from error


def _refuse_free_size(model: nn.Module) -> None:
    """InLine windows shrink with the map: no arithmetic fits every size."""
    for module in model.modules():
        linear = isinstance(module, InLineAttention | LinearAttention)
        if linear and module.window_size:
            raise LaunchError(
                f'the size of images must be fixed for window_size='
                f'{module.window_size}, whose windows shrink with small '
                'maps: --fixed HEIGHT WIDTH'
            )


def _describe_input(cfg: Config) -> dict[str, str]:
    """How images become the input, from the data preprocessor."""
    settings = (
        cfg.model.get('data_preprocessor')
        or cfg.get('data_preprocessor')
        or {}
    )
    rgb = settings.get('bgr_to_rgb', settings.get('to_rgb', False))
    return {
        'input': 'images: float32 (batch, channels, height, width), '
        '(pixel - mean) / std with pixels from 0 to 255',
        'mean': json.dumps(list(settings.get('mean') or [0.0])),
        'std': json.dumps(list(settings.get('std') or [1.0])),
        'channel_order': 'RGB' if rgb else 'BGR',
    }


def _describe_classes(cfg: Config, program) -> dict[str, str]:
    """Names of the classes, where the config's data set knows them all."""
    dataset = cfg.get('test_dataloader', {}).get('dataset', {})
    while 'dataset' in dataset:
        dataset = dataset['dataset']
    names = dataset.get('metainfo', {}).get('classes')
    if names is None and 'type' in dataset:
        with DATASETS.switch_scope_and_registry(None) as registry:
            known = registry.get(dataset['type'])
        names = getattr(known, 'METAINFO', {}).get('classes')
    count = program.model.graph.outputs[0].shape[1]
    if names is None or len(names) != count:
        return {}
    return {'classes': json.dumps(list(names))}

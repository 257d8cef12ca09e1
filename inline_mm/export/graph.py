"""From a module to a checked ONNX file."""

import logging
import operator
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.export
from mmengine.logging import MMLogger
from torch import nn

from ..errors import LaunchError
from .parts import ExportPart

# Largest difference to torch, relative to the largest value of an output.
TOLERANCE = 1e-3
# The size at which a graph with free sizes is made: every windowed stage then
# has several windows along both axes, and no side equals another or a table.
EXAMPLE = (480, 544)


def trace(
    part: ExportPart, fixed: tuple[int, int] | None
) -> tuple['torch.onnx.ONNXProgram', list[str]]:
    """The graph of a part, with a free batch.

    Args:
        part (ExportPart): in evaluation mode, without gradients.
        fixed (tuple[int, int] | None): height and width of the images; None
            keeps them free.

    Returns:
        tuple: the program, and the names of its outputs.

    Raises:
        LaunchError: if torch can't export it.
    """
    images = torch.randn(2, _channels(part), *(fixed or EXAMPLE))
    free = dict.fromkeys([0] if fixed else [0, 2, 3], torch.export.Dim.DYNAMIC)
    try:
        with quiet(), torch.no_grad():
            program = torch.export.export(
                part,
                (images,),
                dynamic_shapes=(free,),
                strict=False,
                # What holds at this size and not at others would be refused;
                # the check of the file finds out whether it matters.
                prefer_deferred_runtime_asserts_over_guards=True,
            )
            names = part.output_names(
                len(program.graph_signature.user_outputs)
            )
            program = torch.onnx.export(
                program,
                dynamo=True,
                external_data=False,
                verbose=False,
                input_names=['images'],
                output_names=names,
                custom_translation_table={operator.floordiv: _floor_divide()},
            )
    except Exception as error:  # torch's exporter raises anything
        way_out = '' if fixed else '; --fixed HEIGHT WIDTH may be possible'
        raise LaunchError(
            f'torch {torch.__version__} can not export this model with a free '
            f'{"batch" if fixed else "size"} ({_cause(error)}){way_out}'
        ) from error
    _name_axes(program, names, part.full_size, fixed)
    return program, names


def write_verified(
    program: 'torch.onnx.ONNXProgram',
    path: Path,
    metadata: dict[str, str],
    part: nn.Module,
    checked: tuple[tuple[int, int, int], ...],
) -> dict[tuple[int, int, int], float]:
    """Write a file, once ONNX Runtime agrees with torch on random images.

    Args:
        program (torch.onnx.ONNXProgram): the graph.
        path (Path): the file; one that is there is replaced.
        metadata (dict[str, str]): written into the file.
        part (nn.Module): what it must agree with.
        checked (tuple): batch, height and width of images to try.

    Returns:
        dict: the deviation for each of `checked`.

    Raises:
        LaunchError: if it doesn't agree, or can't be written; then no file is
            left, and one that was there stays as it is.
    """
    program.model.metadata_props.update(metadata)
    temporary = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        program.save(temporary, external_data=False)
        deviations = _compare(temporary, part, checked)
        os.replace(temporary, path)
    except OSError as error:
        raise LaunchError(f'can not write {path}: {error.strerror}') from None
    finally:
        temporary.unlink(missing_ok=True)
    return deviations


def _compare(
    path: Path, part: nn.Module, checked: tuple[tuple[int, int, int], ...]
) -> dict[tuple[int, int, int], float]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        os.fspath(path), options, providers=['CPUExecutionProvider']
    )
    generator = torch.Generator().manual_seed(0)
    deviations = {}
    for case in checked:
        batch, *size = case
        images = torch.randn(
            batch, _channels(part), *size, generator=generator
        )
        try:
            found = session.run(None, {'images': images.numpy()})
        except Exception as error:  # onnxruntime has no common base class
            raise LaunchError(
                f'ONNX Runtime fails on a batch of {batch} images of '
                f'{size[0]}x{size[1]} pixels ({_cause(error)}); nothing was '
                'written'
            ) from None
        with torch.no_grad():
            wanted = part(images)
        deviations[case] = max(map(_deviation, found, wanted))
        if not deviations[case] <= TOLERANCE:
            raise LaunchError(
                f'ONNX Runtime deviates from torch by {deviations[case]:.1e} '
                f'of the largest value on a batch of {batch} images of '
                f'{size[0]}x{size[1]} pixels, at most {TOLERANCE:g} is '
                'accepted; nothing was written'
            )
    return deviations


def _deviation(found, wanted: torch.Tensor) -> float:
    """Largest difference relative to the largest value; inf if no number."""
    found = torch.from_numpy(found)
    if found.shape != wanted.shape:
        return float('inf')
    error = (found - wanted).abs().max() / wanted.abs().max()
    return error.item() if error.isfinite() else float('inf')


def _channels(part: nn.Module) -> int:
    return next(
        module.in_channels
        for module in part.modules()
        if isinstance(module, nn.Conv2d)
    )


def _floor_divide():
    """Division of sizes rounded down; the exporter's rounds towards zero."""
    from onnxscript import INT64, opset18

    def floor_divide(number: INT64, divisor: INT64) -> INT64:
        rest = opset18.Mod(number, divisor)
        return opset18.Div(opset18.Sub(number, rest), divisor)

    return floor_divide


def _name_axes(
    program: 'torch.onnx.ONNXProgram',
    names: list[str],
    full_size: bool,
    fixed: tuple[int, int] | None,
) -> None:
    """Readable names for free axes, and no traces of the machine.

    The exporter writes formulas for axes, and the source lines of each node.
    """
    import onnx_ir

    model = program.model
    for node in model.graph.all_nodes():
        node.metadata_props.clear()
        for value in node.outputs:
            value.metadata_props.clear()
            if value not in model.graph.outputs:
                value.shape = None  # ONNX Runtime infers it
    for value in (*model.graph.inputs, *model.graph.outputs):
        given = value in model.graph.inputs
        prefix = '' if given or full_size else f'{value.name}_'
        axes = ['batch', None, f'{prefix}height', f'{prefix}width']
        value.shape = onnx_ir.Shape(
            [
                size if isinstance(size, int) else name
                for size, name in zip(value.shape, axes, strict=False)
            ]
        )


@contextmanager
def quiet() -> Iterator[None]:
    """No notes but errors: the exporter's are for its own developers."""
    logger = MMLogger.get_current_instance()
    level, disabled = logger.level, logging.root.manager.disable
    logging.disable(logging.WARNING)
    logger.setLevel(logging.ERROR)  # not under logging's own switch
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logging.disable(disabled)
        logger.setLevel(level)


def _cause(error: Exception) -> str:
    """The first line of the first error of a chain."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0]

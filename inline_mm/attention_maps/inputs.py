"""What a user names, as what is analysed: images, points, a backbone."""

from pathlib import Path
from typing import NamedTuple

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn

from ..checkpoint import describe_init
from ..data_check.images import read_image
from ..errors import LaunchError
from ..export.graph import quiet
from ..layers import InLineAttention
from ..predict.run import VIDEOS, find_frames
from .maps import Point

# In the place of a checkpoint: no weights are loaded.
RANDOM = 'random'
# Sides are rounded to whole tokens of the last stage.
PATCH = 32
# The longer side, in shorter ones, beyond which an image is made smaller: as
# detectors do (1333 and 800 pixels).
LONGEST = 5 / 3
LOADER = [dict(type='LoadImageFromFile')]


class Picture(NamedTuple):
    """An image file that can be read.

    Args:
        path (Path): the file.
        hw (tuple[int, int]): its height and width, upright, in pixels.
        input_hw (tuple[int, int]): what it is resized to.
    """

    path: Path
    hw: tuple[int, int]
    input_hw: tuple[int, int]

    def read(self) -> np.ndarray:
        """The resized image: BGR, (H, W, 3), uint8."""
        height, width = self.input_hw
        return mmcv.imresize(mmcv.imread(str(self.path)), (width, height))


def find_pictures(sources: list[str], side: int) -> list[Picture]:
    """The images behind paths; all are decoded once.

    Args:
        sources (list[str]): images and folders of images.
        side (int): the shorter side after resizing, in pixels. The ratio is
            kept but for rounding to multiples of `PATCH`; of an image longer
            than `LONGEST` the shorter side becomes smaller.

    Returns:
        list[Picture]: the images, in order.

    Raises:
        LaunchError: names what is missing or can't be read.
    """
    if side < PATCH:
        raise LaunchError(
            f'--image-size is {side}, expected {PATCH} pixels or more'
        )
    pictures = []
    for source in map(Path, sources):
        if source.suffix.lower() in VIDEOS and source.is_file():
            raise LaunchError(f'{source} is a video, expected images')
        for frame in find_frames(source)[0]:
            found = read_image(str(frame.path), LOADER)
            if isinstance(found, str):
                raise LaunchError(f'the image {frame.path} {found}')
            pictures.append(
                Picture(frame.path, tuple(found), _input_size(found, side))
            )
    return pictures


def _input_size(hw: tuple[int, int], side: int) -> tuple[int, int]:
    size = mmcv.rescale_size(hw[::-1], (side, int(side * LONGEST)))
    height, width = (max(PATCH, round(s / PATCH) * PATCH) for s in size[::-1])
    return height, width


def read_points(words: list[str], picture: Picture) -> list[Point]:
    """Points of an image.

    Args:
        words (list[str]): 'X,Y' from the upper left corner: shares of width
            and height if neither is above 1, else pixels of the file.
        picture (Picture): the image.

    Returns:
        list[Point]: the points.

    Raises:
        LaunchError: for what isn't a point of the image.
    """
    points = []
    height, width = picture.hw
    for word in words:
        try:
            x, y = map(float, word.split(','))
        except ValueError:
            raise LaunchError(
                f'--points takes X,Y, such as 0.5,0.5 or 320,200; got {word!r}'
            ) from None
        if max(x, y) > 1:
            x, y = x / width, y / height
        if not (0 <= x <= 1 and 0 <= y <= 1):
            raise LaunchError(
                f'--points {word} is outside of {picture.path}, which has '
                f'{width}x{height} pixels (width x height)'
            )
        points.append(Point(x, y))
    return points


def build_backbone(cfg: Config, checkpoint: str) -> tuple[nn.Module, str]:
    """The backbone of a config with weights.

    Args:
        cfg (Config): config of a detector, a segmentor or a classifier.
        checkpoint (str): anything that `InLinePretrained` takes: a file of
            any of these, an official file, a URL or a published name; or
            'random' for the random weights that training would start from.

    Returns:
        tuple[nn.Module, str]: the backbone in evaluation mode, and where its
        weights come from.

    Raises:
        LaunchError: if there is no InLine attention in it.
        CheckpointError: if the weights can't be read or don't fit.
    """
    init_default_scope(cfg.default_scope)
    settings = cfg.model.backbone.copy()
    settings.init_cfg = None
    if checkpoint != RANDOM:
        settings.init_cfg = dict(
            type='InLinePretrained', checkpoint=checkpoint
        )
    torch.manual_seed(0)
    try:
        backbone = MODELS.build(settings)
    except (KeyError, TypeError, ValueError) as error:
        raise LaunchError(
            f'the backbone can not be built: {error.args[0]}'
        ) from error
    if not any(isinstance(m, InLineAttention) for m in backbone.modules()):
        raise LaunchError(
            f'{settings.type} of {cfg.filename} has no InLine attention, '
            'expected a backbone with InLine blocks'
        )
    with quiet():  # it would name every parameter
        backbone.init_weights()
    return backbone.eval(), describe_init(backbone)


def normalise(cfg: Config, pixels: np.ndarray) -> Tensor:
    """An image as the config's data preprocessor gives it to the backbone.

    Args:
        cfg (Config): the config.
        pixels (np.ndarray): BGR, (H, W, 3), uint8.

    Returns:
        Tensor: (1, 3, H, W), float32.
    """
    settings = (
        cfg.model.get('data_preprocessor')
        or cfg.get('data_preprocessor')
        or {}
    )
    if settings.get('bgr_to_rgb', settings.get('to_rgb', False)):
        pixels = pixels[..., ::-1]
    mean = torch.tensor(settings.get('mean') or [0.0])
    std = torch.tensor(settings.get('std') or [1.0])
    image = torch.from_numpy(np.ascontiguousarray(pixels)).float()
    return ((image - mean) / std).permute(2, 0, 1)[None]

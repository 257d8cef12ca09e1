"""What is exported of a model: the computation, its names, its limits."""

from collections.abc import Callable
from functools import partial

from mmengine.config import Config
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import LaunchError


class ExportPart(nn.Module):
    """A model as a function of normalised images alone.

    Args:
        model (nn.Module): the parameters.
        function (Callable): images (B, 3, H, W) to a tensor or a tuple.
        output (str): name of the output, or of each of several, to which
            their number is added.
        content (str): what the outputs are, and what is left out.
        full_size (bool): whether the output has the images' size.
            Defaults to False.
    """

    def __init__(
        self,
        model: nn.Module,
        function: Callable[[Tensor], Tensor | tuple[Tensor, ...]],
        output: str,
        content: str,
        full_size: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.function = function
        self.output = output
        self.content = content
        self.full_size = full_size

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) to the outputs."""
        out = self.function(images)
        return (out,) if isinstance(out, Tensor) else tuple(out)

    def output_names(self, count: int) -> list[str]:
        """Names of `count` outputs."""
        if self.output == 'logits':
            return ['logits']
        return [f'{self.output}{index}' for index in range(count)]


def backbone_part(backbone: nn.Module) -> ExportPart:
    """A backbone alone."""
    return ExportPart(
        backbone, backbone, 'map', 'the outputs of the backbone, in order'
    )


def whole_part(model: nn.Module, cfg: Config) -> ExportPart:
    """As much of a model as has an ONNX form.

    Args:
        model (nn.Module): a model of mmdet, mmseg or mmpretrain.
        cfg (Config): its config.

    Raises:
        LaunchError: for a kind of model that isn't known here.
    """
    if cfg.default_scope == 'mmdet':
        return ExportPart(
            model,
            model.extract_feat,
            'map',
            'the maps of backbone and neck; the heads, RoIAlign and NMS of '
            'the detector are not in the file: they have no ONNX form here',
        )
    if cfg.default_scope == 'mmseg' and hasattr(model, 'decode_head'):
        return ExportPart(
            model,
            partial(_segment, model),
            'logits',
            'logits (batch, classes, height, width), resized to the images; '
            'argmax, sliding windows and padding are left to the caller',
            full_size=True,
        )
    if cfg.default_scope == 'mmpretrain' and getattr(model, 'with_head', 0):
        return ExportPart(
            model,
            partial(model, mode='tensor'),
            'logits',
            'logits (batch, classes); softmax is left to the caller',
        )
    raise LaunchError(
        f'{type(model).__name__} is neither a detector, a segmentor nor a '
        'classifier; --part backbone exports its backbone'
    )


def _segment(model: nn.Module, images: Tensor) -> Tensor:
    """Logits of a segmentor at the size of the images."""
    logits = model.decode_head(model.extract_feat(images))
    return F.interpolate(
        logits,
        images.shape[-2:],
        mode='bilinear',
        align_corners=model.align_corners,
    )

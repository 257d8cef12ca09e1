"""The option to keep a batch's padding out of the attention."""

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import nn


@HOOKS.register_module()
class TrueSizeHook(Hook):
    """Lets a backbone see each image without the padding of its batch.

    Images of a batch are padded to one size, at the right and bottom. By
    default that padding takes part in the attention, as in every published
    model: an image's result depends on the sizes of its neighbours (not on
    their content). With this hook it doesn't: the backbone runs at the true
    size of each image, as the data samples' ``img_shape`` gives it, and its
    maps are zero beyond. Images of different sizes then run one after the
    other.

    In a config: ``custom_hooks = [dict(type='TrueSizeHook')]``. It works for
    the InLine backbones in detectors, segmentors and classifiers, in
    training, validation and test of mmengine's `Runner`, with several
    processes, and where an evaluation augments its images. For a model
    without a runner call :func:`use_true_sizes`.
    """

    def before_run(self, runner) -> None:
        """Attaches to the runner's model."""
        use_true_sizes(runner.model)
        runner.logger.info('the backbone sees images without their padding')


def use_true_sizes(model: nn.Module) -> None:
    """Makes a model hand the true sizes of its images to its backbone.

    Args:
        model (nn.Module): a detector, segmentor or classifier with an InLine
            backbone, or a wrapper of one. Attaching twice changes nothing.

    Raises:
        ValueError: if it has no such backbone, or slides windows over images,
            which are cuts of another size.
    """
    owners = [m for m in model.modules() if hasattr(m, 'backbone')]
    owner = owners[0] if owners else model
    backbone = getattr(owner, 'backbone', None)
    if not getattr(backbone, 'takes_true_sizes', False):
        raise ValueError(
            'true sizes need a model with an InLine backbone, got '
            f'{type(owner).__name__} with '
            f'{type(backbone).__name__ if backbone else "no backbone"}'
        )
    test_cfg = getattr(owner, 'test_cfg', None) or {}
    if test_cfg.get('mode') == 'slide':
        raise ValueError(
            "true sizes don't work with test_cfg.mode='slide', whose windows "
            "are cuts of another size; use mode='whole'"
        )
    if not hasattr(owner, '_true_sizes'):
        owner._true_sizes = _TrueSizes(owner, backbone)


class _TrueSizes:
    """Carries the sizes from a model's call to its backbone's.

    Args:
        owner (nn.Module): the model with the backbone.
        backbone (nn.Module): the backbone.
    """

    def __init__(self, owner: nn.Module, backbone: nn.Module) -> None:
        self.sizes: list[tuple[int, int]] | None = None
        owner.register_forward_pre_hook(self._take, with_kwargs=True)
        owner.register_forward_hook(self._drop, always_call=True)
        backbone.register_forward_pre_hook(self._hand_over, with_kwargs=True)

    def _take(self, module, args, kwargs) -> None:
        # The signature of mmengine's models: inputs, data_samples, mode.
        samples = kwargs.get('data_samples')
        if samples is None and len(args) > 1:
            samples = args[1]
        self.sizes = None
        if samples is not None:
            self.sizes = [tuple(s.img_shape[:2]) for s in samples]

    def _drop(self, module, args, output) -> None:
        self.sizes = None

    def _hand_over(self, module, args, kwargs):
        if self.sizes is None:
            return None
        return args, dict(kwargs, true_sizes=self.sizes)

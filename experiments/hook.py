"""The control of the experiment, a hook for any config."""

from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class FrozenBackboneHook(Hook):
    """Keeps a backbone at the random weights it began with."""

    def before_train(self, runner) -> None:
        """Stops the gradients, after the weights were initialised."""
        runner.model.backbone.requires_grad_(False)

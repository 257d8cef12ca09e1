"""The check as a hook, for runners that the launchers here don't start."""

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import BaseLoop

from .check import check_before_run


@HOOKS.register_module()
class DataCheckHook(Hook):
    """Checks a run's data and classes before weights are loaded.

    ``custom_hooks = [dict(type='DataCheckHook')]`` brings the check to the
    hosts' own tools. ``tools/train.py`` and ``tools/test.py`` of this package
    do it in any case, and once.
    """

    def before_run(self, runner) -> None:
        """Checks the data.

        Args:
            runner (Runner): the runner.

        Raises:
            DataError: on the first process, if there are faults.
            SystemExit: on the others, then.
        """
        # The public properties would build the loops of the other modes.
        for mode in ('train', 'val', 'test'):
            if isinstance(getattr(runner, f'_{mode}_loop'), BaseLoop):
                check_before_run(runner.cfg, mode)
                break

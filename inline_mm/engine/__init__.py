"""What the launchers need around mmengine's runner."""

from ..data_check import DataCheckHook
from ..errors import LaunchError, RunStoppedError
from .guard import NonFiniteGuardHook
from .hooks import RunRecordHook
from .metrics import DumpSegResults
from .saving import SafeCheckpointHook
from .stopping import StopSignalHook
from .true_sizes import TrueSizeHook, use_true_sizes

__all__ = [
    'DataCheckHook',
    'DumpSegResults',
    'LaunchError',
    'NonFiniteGuardHook',
    'RunRecordHook',
    'RunStoppedError',
    'SafeCheckpointHook',
    'StopSignalHook',
    'TrueSizeHook',
    'use_true_sizes',
]

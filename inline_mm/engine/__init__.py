"""What the launchers need around mmengine's runner."""

from .hooks import RunRecordHook
from .launch import LaunchError
from .metrics import DumpSegResults

__all__ = ['DumpSegResults', 'LaunchError', 'RunRecordHook']

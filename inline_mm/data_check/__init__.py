"""Checks of a run's data, before its first iteration."""

from .check import check_before_run, check_data
from .counts import count_images, largest_train_shape
from .hook import DataCheckHook
from .images import SAMPLE
from .report import DataError, ImageCount, Report

__all__ = [
    'SAMPLE',
    'DataCheckHook',
    'DataError',
    'ImageCount',
    'Report',
    'check_before_run',
    'check_data',
    'count_images',
    'largest_train_shape',
]

"""The one place that knows foreign checkpoints.

Official InLine files, converted files, whole detectors, segmentors and
classifiers, from paths, URLs and published names: strictly the right weights,
or one clear sentence.
"""

from .checking import check_checkpoint
from .convert import convert_official, identify
from .errors import CheckpointError
from .export import to_official
from .loading import InLinePretrained, describe_init
from .writing import convert_file

__all__ = [
    'CheckpointError',
    'InLinePretrained',
    'check_checkpoint',
    'convert_file',
    'convert_official',
    'describe_init',
    'identify',
    'to_official',
]

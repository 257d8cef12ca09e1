"""InLine attention backbones for OpenMMLab 2.x.

Importing the package registers its backbones and hooks in mmengine's root
registries, so that configs of mmdet, mmsegmentation and mmpretrain find them
by plain name. No host is imported.
"""

try:
    import mmcv
    import mmengine
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f'inline_mm needs {error.name}, which is not installed; `make env` '
        'installs a set that was tested'
    ) from error
from mmengine.utils import digit_version

from .version import __version__

_MINIMUM = (
    ('torch', torch.__version__, '2.1.0'),
    ('mmengine', mmengine.__version__, '0.10.4'),
    ('mmcv', mmcv.__version__, '2.1.0'),
)
for _name, _found, _wanted in _MINIMUM:
    if digit_version(_found) < digit_version(_wanted):
        raise ImportError(
            f'inline_mm {__version__} needs {_name} {_wanted} or newer, found '
            f'{_found}; `make env` installs a set that was tested'
        )

from . import checkpoint, engine, models  # noqa: E402

__all__ = ['__version__', 'checkpoint', 'engine', 'models']

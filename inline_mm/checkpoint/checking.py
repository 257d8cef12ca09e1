"""A quick look at a checkpoint before somebody else loads it."""

from collections.abc import Mapping
from pathlib import Path

from .errors import CheckpointError
from .reading import (
    check_file,
    is_forced,
    is_safetensors,
    refuse_other_kinds,
    unpickle,
)


def check_checkpoint(path: str | Path) -> None:
    """Make sure that mmengine can load a file, in a fraction of the time.

    mmengine ends in a traceback for most of what this refuses: a missing
    file (names near it are listed), a folder, an empty file, a web page, a
    file that was cut off, one of another kind (safetensors too, which
    mmengine doesn't read), a pickled object that isn't a dict, a file of the
    official layout.

    The pickle is read, without executing anything in it; of a zip archive,
    which torch.save has written since 1.6, no tensor is. So changed values
    pass: their checksums are left to `InLinePretrained` and the converter.
    Files of the older kind are read whole. Where
    TORCH_FORCE_WEIGHTS_ONLY_LOAD is set, the pickle isn't read.

    Args:
        path (str | Path): a file on this machine; `~` is the home folder.

    Raises:
        CheckpointError: in one sentence, why it can't be loaded.
    """
    path = Path(path).expanduser()
    head = check_file(path)
    if path.suffix == '.safetensors' or is_safetensors(head):
        raise CheckpointError(
            f'{path} is a safetensors file, which the runners do not read, '
            'expected one of torch.save; InLinePretrained takes it as its '
            'checkpoint'
        )
    refuse_other_kinds(path, head, checksums=False)
    if is_forced():
        return
    content = unpickle(path, mmap=head.startswith(b'PK'))
    if not isinstance(content, Mapping):
        raise CheckpointError(
            f'{path} holds a {type(content).__name__}, expected a dict of '
            'tensors'
        )
    if 'state_dict' not in content and isinstance(
        content.get('model'), Mapping
    ):
        raise CheckpointError(
            f"{path} has its weights under 'model', as official files do, "
            'which the runners do not read; convert it with '
            'tools/convert_checkpoint.py (--keep-head for a classifier)'
        )

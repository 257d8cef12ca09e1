"""What the tests of checkpoints share."""

import logging

import pytest
import torch
from mmengine.logging import MMLogger
from small_checkpoints import tiny_state_dict


@pytest.fixture
def log():
    """The messages of the initialiser in mmengine's log."""
    logger = MMLogger.get_current_instance()
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record)
    logger.addHandler(handler)
    yield lambda: [
        record.getMessage()
        for record in records
        if 'backbone tensors' in record.getMessage()
    ]
    logger.removeHandler(handler)


@pytest.fixture
def official(tmp_path):
    """Writes the official file of a family, returns its path."""

    def write(family, **changes):
        path = tmp_path / 'source' / f'{family}.pth'
        path.parent.mkdir(exist_ok=True)
        tensors = {**tiny_state_dict(family), **changes}
        torch.save({'model': tensors, 'epoch': 300}, path)
        return path

    return write

"""Two processes on gloo: gradients meet, weights stay equal, nobody hangs."""

import json
import math
import time

import pytest
import torch.multiprocessing as mp
from distributed_workers import (
    CASES,
    backbones_worker,
    detector_worker,
    fsdp_worker,
)

TIMEOUT = 120


def test_ddp_keeps_both_ranks_equal(tmp_path):
    """With and without the search for unused parameters, recomputing blocks,
    freezing stages and leaving outputs away.
    """
    mp.spawn(backbones_worker, (tmp_path,), nprocs=2)
    for rank in range(2):
        results = json.loads((tmp_path / f'{rank}.json').read_text())
        for case, result in zip(CASES, results, strict=True):
            assert result['spread'] == 0, case
            assert result['moved'] > 0, case
            assert not result['without_gradient'], case


def test_a_rank_without_objects_doesnt_hang_the_other(tmp_path):
    context = mp.spawn(detector_worker, (tmp_path,), nprocs=2, join=False)
    deadline = time.monotonic() + TIMEOUT
    # True once both have ended; False also when one of them has.
    while not context.join(timeout=1):
        if time.monotonic() > deadline:
            for process in context.processes:
                process.kill()
            pytest.fail(f'the two processes did not end within {TIMEOUT} s')
    for rank in range(2):
        result = json.loads((tmp_path / f'{rank}.json').read_text())
        assert math.isfinite(result['loss'])
        assert result['spread'] == 0


def test_fsdp_shards_and_trains_a_backbone(tmp_path):
    mp.spawn(fsdp_worker, (tmp_path,), nprocs=2)
    for rank in range(2):
        result = json.loads((tmp_path / f'{rank}.json').read_text())
        assert result['wrapped']
        assert result['moved'] > 0
        assert result['spread'] == 0

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

TIMEOUT = 300


def run_two_processes(worker, folder):
    """What each process left behind; a hang is ended and fails."""
    context = mp.spawn(worker, (folder,), nprocs=2, join=False)
    deadline = time.monotonic() + TIMEOUT
    # True once both have ended; False also when one of them has.
    while not context.join(timeout=1):
        if time.monotonic() > deadline:
            for process in context.processes:
                process.kill()
            pytest.fail(f'the two processes did not end within {TIMEOUT} s')
    return [
        json.loads((folder / f'{rank}.json').read_text()) for rank in range(2)
    ]


def test_ddp_keeps_both_ranks_equal(tmp_path):
    """With and without the search for unused parameters, recomputing blocks,
    freezing stages and leaving outputs away.
    """
    for results in run_two_processes(backbones_worker, tmp_path):
        for case, result in zip(CASES, results, strict=True):
            assert result['spread'] == 0, case
            assert result['moved'] > 0, case
            assert not result['without_gradient'], case


def test_a_rank_without_objects_doesnt_hang_the_other(tmp_path):
    for result in run_two_processes(detector_worker, tmp_path):
        assert math.isfinite(result['loss'])
        assert result['spread'] == 0


def test_fsdp_shards_and_trains_a_backbone(tmp_path):
    for result in run_two_processes(fsdp_worker, tmp_path):
        assert result['wrapped']
        assert result['moved'] > 0
        assert result['spread'] == 0

"""Two processes on gloo: gradients meet, weights stay equal, nobody hangs."""

import json
import math
import time

import pytest
import torch.multiprocessing as mp
from distributed_workers import CASES, worker

TIMEOUT = 300


@pytest.fixture(scope='module')
def results(tmp_path_factory):
    """What each process left behind; a hang is ended and fails."""
    folder = tmp_path_factory.mktemp('distributed')
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


def test_ddp_keeps_both_ranks_equal(results):
    """With and without the search for unused parameters, recomputing blocks,
    freezing stages and leaving outputs away.
    """
    for rank in results:
        for case, result in zip(CASES, rank['backbones'], strict=True):
            assert result['spread'] == 0, case
            assert result['moved'] > 0, case
            assert not result['without_gradient'], case


def test_a_rank_without_objects_doesnt_hang_the_other(results):
    for rank in results:
        assert math.isfinite(rank['detector']['loss'])
        assert rank['detector']['spread'] == 0


def test_fsdp_shards_and_trains_a_backbone(results):
    for rank in results:
        assert rank['sharded']['wrapped']
        assert rank['sharded']['moved'] > 0
        assert rank['sharded']['spread'] == 0

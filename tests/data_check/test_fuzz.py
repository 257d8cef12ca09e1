"""Random combinations of slips: the right result, or their sentences."""

import shutil

import numpy as np
import pytest
from own_data import load_own, read_through, shrink, write_coco, write_masks
from slips import COCO, MASKS

from inline_mm.data_check import check_data

KINDS = {
    'mask': (write_coco, COCO),
    'cascade': (write_coco, COCO),
    'upernet': (write_masks, MASKS),
    'fpn': (write_masks, MASKS),
}
# One seed for each kind; a heavy run draws more from other seeds.
ROUNDS = [
    *(pytest.param(kind, seed, 25) for seed, kind in enumerate(KINDS)),
    *(
        pytest.param(kind, 10 + seed, 400, marks=pytest.mark.heavy)
        for seed, kind in enumerate(KINDS)
    ),
]


@pytest.fixture(scope='module')
def clean(tmp_path_factory):
    """The clean data, by the function that wrote them."""
    root = tmp_path_factory.mktemp('clean')
    for write in (write_coco, write_masks):
        write(root / write.__name__)
    return root


@pytest.mark.parametrize('kind', ['mask', 'upernet'])
def test_every_slip_alone(clean, tmp_path, kind):
    _, slips = KINDS[kind]
    for name, (_, words) in slips.items():
        found = check(kind, clean, tmp_path, [name])
        stopped = any(words in sentence for sentence in found) if words else 0
        assert bool(words) == bool(found) == bool(stopped), (name, found)


@pytest.mark.parametrize(('kind', 'seed', 'number'), ROUNDS)
def test_combined_slips(clean, tmp_path, kind, seed, number):
    rng = np.random.default_rng(seed)
    _, slips = KINDS[kind]
    for _ in range(number):
        drawn = rng.choice(list(slips), rng.integers(0, 5), replace=False)
        planted = [slips[name][1] for name in drawn if slips[name][1]]
        found = check(kind, clean, tmp_path, drawn)
        assert bool(found) == bool(planted), (drawn, found)
        for sentence in found:
            assert any(words in sentence for words in planted), (
                drawn,
                sentence,
            )


def check(kind, clean, tmp_path, names):
    """The faults found; where there are none, the data can be read."""
    write, slips = KINDS[kind]
    root = tmp_path / 'data'
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(clean / write.__name__, root)
    cfg = shrink(load_own(kind, root))
    for name in sorted(names, key=list(slips).index):
        slips[name][0](cfg, root)
    report = check_data(cfg, 'train')
    if not report.faults:
        read_through(cfg, 'train')
    return report.faults

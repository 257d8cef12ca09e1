"""Makes tests/data/goldens from the full golden data.

Usage: python tests/shrink_goldens.py FULL_FOLDER

Whole models keep their float64 numbers for one variant of each family. Of the
modules' outputs and gradients, 64 entries of each tensor are kept, with its
size and largest magnitude; inputs and weights follow from their names. Of the
counts of parameters and operations, the totals.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / 'data' / 'goldens'
MODELS = ('pvt_t', 'pvt_t_256x320', 'swin_t', 'cswin_t', 'deit_t')
COUNTS = ('img_size', 'num_params', 'flops_mul_add_as_2')
SAMPLES = 64


def shrink_model(source, target):
    numbers = np.load(source)
    kept = {
        key: numbers[key].astype(np.int32)
        if key.endswith(('_idx', '_shape'))
        else numbers[key]
        for key in numbers
        if not key.endswith('f32')
    }
    np.savez_compressed(target, **kept)


def shrink_module(source, target):
    numbers = np.load(source)
    rng = np.random.default_rng(0)
    kept = {}
    for key in numbers:
        if key != 'out' and not key.startswith('grad'):
            continue
        values = numbers[key].reshape(-1)
        count = min(SAMPLES, values.size)
        index = np.sort(rng.choice(values.size, count, replace=False))
        kept[key] = values[index]
        kept[f'idx/{key}'] = index.astype(np.int32)
        kept[f'numel/{key}'] = values.size
        kept[f'absmax/{key}'] = np.abs(values).max()
    np.savez_compressed(target, **kept)


def main(full):
    for folder in ('models', 'modules'):
        (OUT / folder).mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        shrink_model(
            full / 'models' / f'{name}.npz', OUT / 'models' / f'{name}.npz'
        )
        shutil.copyfile(
            full / 'models' / f'{name}.json', OUT / 'models' / f'{name}.json'
        )
    cases = json.loads((full / 'modules' / 'cases.json').read_text())
    text = json.dumps(cases, separators=(',', ':'))
    (OUT / 'modules' / 'cases.json').write_text(text + '\n')
    for name in cases:
        shrink_module(
            full / 'modules' / f'{name}.npz', OUT / 'modules' / f'{name}.npz'
        )
    counts = json.loads((full / 'flops.json').read_text())['models']
    kept = {
        name: {key: row[key] for key in COUNTS} for name, row in counts.items()
    }
    text = json.dumps(dict(models=kept), indent=1)
    (OUT / 'flops.json').write_text(text + '\n')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))

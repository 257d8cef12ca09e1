#!/usr/bin/env python
"""Compare InLine-PVT and InLine-Swin with PVT and Swin on drawn shapes.

Draws the data, trains and tests Mask R-CNN and Semantic FPN with small
variants of all four backbones, several seeds each and an equal budget, and
again with each backbone frozen at random weights. Ends in tables, a page and
a report. Stopped in whatever way, it goes on where it was when it is called
again: finished runs are kept.
"""

import argparse
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text} is not positive')
    return int(text)


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--out',
        type=Path,
        default=Path('work_dirs/experiment'),
        help='folder of the experiment (default: %(default)s)',
    )
    parser.add_argument(
        '--seeds',
        type=positive,
        default=3,
        help='runs of each model (default: %(default)s)',
    )
    parser.add_argument(
        '--controls',
        type=positive,
        default=1,
        help='runs of each model with its backbone frozen, at most --seeds '
        '(default: %(default)s)',
    )
    parser.add_argument(
        '--jobs',
        type=positive,
        default=2,
        help='runs at a time, one thread each (default: %(default)s)',
    )
    parser.add_argument(
        '--iterations',
        type=positive,
        help="length of each run instead of the configs'",
    )
    return parser.parse_args()


def main():
    args = parse_args()
    # On the CPU everywhere, one thread a run: what is documented.
    os.environ.update(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    from inline_mm.analysis.experiment import run_experiment
    from inline_mm.analysis.shapes import ShapesConfig
    from inline_mm.engine import launch

    with launch.one_sentence_errors('experiment.py'):
        run_experiment(
            ROOT / 'configs',
            args.out,
            ShapesConfig(),
            args.seeds,
            args.controls,
            args.jobs,
            args.iterations,
            lambda line: print(line, flush=True),
        )
    print(f'report: {args.out}/comparison.md; tables: {args.out}/tables')


if __name__ == '__main__':
    main()

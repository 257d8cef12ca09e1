#!/usr/bin/env python
"""Small, fair experiments on drawn shapes, on a CPU, without a download.

comparison  Mask R-CNN and Semantic FPN with small variants of InLine-PVT,
            PVT, InLine-Swin and Swin, and again with each backbone frozen at
            random weights; about half an hour on two cores
ablations   the paper's steps from division and softmax to InLine, in
            segmentors with small models like Swin and DeiT; at most an hour

Draws the data, trains and tests with several seeds and an equal budget, and
ends in tables, a page, a figure and a report. Stopped in whatever way, it
goes on where it was when it is called again: finished runs are kept.
"""

import argparse
import os
from pathlib import Path

from tools._command import command

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
        'name',
        nargs='?',
        choices=['comparison', 'ablations'],
        default='comparison',
        help='which experiment (default: %(default)s)',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='folder of the experiment (default: work_dirs/NAME)',
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
        help='comparison: runs of each model with its backbone frozen, at '
        'most --seeds (default: 1)',
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
    args = parser.parse_args()
    if args.controls and args.name != 'comparison':
        parser.error(f'--controls is of comparison, not of {args.name}')
    if (args.controls or 1) > args.seeds:
        parser.error(
            f'--controls is {args.controls}, expected at most --seeds, '
            f'{args.seeds}'
        )
    return args


def main():
    args = parse_args()
    # On the CPU everywhere, one thread a run: what is documented.
    os.environ.update(CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1')
    from . import ablations, comparison
    from .runs import run_experiment
    from .shapes import ShapesConfig

    configs = ROOT / 'configs'
    if args.name == 'comparison':
        experiment = comparison
        runs = comparison.list_runs(configs, args.seeds, args.controls or 1)
    else:
        experiment = ablations
        runs = ablations.list_runs(configs, args.seeds)
    out = args.out or Path('work_dirs') / args.name
    run_experiment(
        runs,
        experiment.write_report,
        out,
        ShapesConfig(),
        args.jobs,
        args.iterations,
        lambda line: print(line, flush=True),
    )
    print(f'report: {out}/{args.name}.md; tables: {out}/tables')


if __name__ == '__main__':
    with command('experiments'):
        main()

#!/usr/bin/env python
"""Measure how fast backbones and attention layers are, and what they hold.

examples:
  python -m benchmarks models inline-swin-tiny swin-tiny --sizes 512 --out DIR
      side by side; the last one is the baseline
  python -m benchmarks models inline-pvt-tiny \\
      inline-pvt-tiny:straightforward \\
      mmdet::pvt/retinanet_pvt-t_fpn_1x_coco.py --modes eval train --out DIR
      also a config's backbone, and ours as the paper writes it down
  python -m benchmarks layers 1,200,320,96,3 --out DIR
      attention layers of B,H,W,C,heads
  python -m benchmarks goals --out DIR
      all that docs/performance.md claims, in about 20 minutes of a quiet CPU;
      a second call measures what is missing
  python -m benchmarks report DIR docs
      write docs/performance.md from it
"""

import argparse
from pathlib import Path

from tools._command import command

DTYPES = 'float32, or what autocast computes in: bfloat16, float16'


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest='command', required=True)
    models = commands.add_parser('models', help='compare backbones')
    add = models.add_argument
    add(
        'candidates',
        nargs='+',
        metavar='MODEL',
        help='inline-{pvt,swin,cswin,deit}-VARIANT, swin-VARIANT or '
        'pvt-VARIANT (of mmdet), or a config: file, shipped name, '
        'mmdet::FOLDER/NAME.py; with :straightforward behind it, our blocks '
        'as the paper writes them down',
    )
    add('--sizes', nargs='+', default=['224'], help='SIDE or HEIGHTxWIDTH')
    add('--batches', nargs='+', type=int, default=[1], help='1 by default')
    add('--with-cp', action='store_true', help='activation checkpoints')
    layers = commands.add_parser('layers', help='compare attention layers')
    layers.add_argument('sizes', nargs='+', metavar='B,H,W,C,HEADS')
    layers.add_argument(
        '--candidates',
        nargs='+',
        default=['inline', 'gemm2', 'straightforward'],
        help='of inline (ours), straightforward (as the paper writes it '
        'down), gemm2 (the two projections alone), softmax '
        '(scaled_dot_product_attention); the first three by default',
    )
    for parser_of in (models, layers):
        add = parser_of.add_argument
        add('--baseline', help='one of the candidates; the last by default')
        add('--modes', nargs='+', default=['eval'], help='eval, train')
        add('--dtypes', nargs='+', default=['float32'], help=DTYPES)
        add('--repeats', type=int, default=5, help='rounds at least; 5')
        add('--compile', action='store_true', help='with torch.compile')
        add('--skip-memory', action='store_true', help='no peak memory')
    goals = commands.add_parser('goals', help='measure all that is claimed')
    add = goals.add_argument
    add('--dtype', default='float32', help=DTYPES)
    add('--sections', nargs='+', help='measure these alone, and anew')
    add('--quick', action='store_true', help='small sizes: a try, no claim')
    for parser_of in (models, layers, goals):
        add = parser_of.add_argument
        add('--device', default='cpu', help='cpu, cuda or cuda:N')
        add('--threads', type=int, default=1, help='of the CPU; 1')
        add('--out', type=Path, required=True, help='folder for the results')
    report = commands.add_parser('report', help='write performance.md')
    report.add_argument('results', type=Path, help='the folder of goals')
    report.add_argument('docs', type=Path, help='where to write')
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since the drawing takes seconds.
    from . import commands

    getattr(commands, args.command)(args)


if __name__ == '__main__':
    with command('benchmarks'):
        main()

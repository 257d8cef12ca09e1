#!/usr/bin/env python
"""Compare tested models in tables, figures and a page.

examples:
  tools/compare.py a.json b.json
      side by side; the first one is what the others are compared with
  tools/compare.py a.json b.json --published --out comparison
      also beside published numbers; comparison.{md,csv,html} and
      per_class.csv
  tools/compare.py inline-seed*.json swin-seed*.json --out comparison
      runs that differ in their seed alone become one row, with their spread
  tools/compare.py a.json work_dirs/other --out comparison
      with the training curves of a run that wasn't tested

A record comes from tools/test.py CONFIG CHECKPOINT --result FILE.json.
Training curves are read from the logs beside each checkpoint.
"""

import argparse

from _command import command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'paths',
        nargs='+',
        metavar='FILE.json',
        help='record of a test, or a work folder for its training curves',
    )
    parser.add_argument(
        '--published',
        action='store_true',
        help='add the published numbers of InLine, Swin and PVT with their '
        'sources, and what yours differ by',
    )
    parser.add_argument(
        '--out', metavar='FOLDER', help='write the tables and the page here'
    )
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from rich.console import Console

    from inline_mm.compare import compare_files

    comparison = compare_files(args.paths, args.out, args.published)
    comparison.show(Console())
    if args.out:
        print(f'written to {args.out}: comparison.html and the tables')


if __name__ == '__main__':
    with command('compare.py'):
        main()

#!/usr/bin/env python
"""Write the meta files, model-index.yml and the READMEs' tables of models.

examples:
  python -m zoo
      after a new config, a measured result or a published number
  python -m zoo --recount
      after a change of a model: counts every one anew (some minutes)

Parameters and multiply-adds are counted. Results and weights are written into
a config's metafile.yml by hand and kept; published numbers stand in
inline_mm/compare/published.yml.
"""

import argparse
from pathlib import Path

from tools._command import command

ROOT = Path(__file__).resolve().parents[1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--recount',
        action='store_true',
        help='count parameters and multiply-adds again where they are known',
    )
    args = parser.parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm.complexity import count as flops
    from inline_mm.errors import LaunchError

    from . import metafiles as zoo
    from . import tables as zoo_tables

    try:
        zoo.write(ROOT, flops.count, args.recount)
        pages = zoo_tables.pages(ROOT)
    except ValueError as error:
        raise LaunchError(error) from error
    for page, text in pages.items():
        page.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    with command('zoo'):
        main()

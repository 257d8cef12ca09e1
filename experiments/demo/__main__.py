"""Train, test and draw a few small models on the bundled images.

Mask R-CNN with InLine-PVT, with Swin and with a frozen InLine-PVT on 8 COCO
images, then Semantic FPN with InLine-PVT on 3 ADE20K pairs: 5 to 10
minutes on 2 cores. A call starts afresh: it never resumes or mixes.
"""

import argparse
import os
from pathlib import Path

from tools._command import command

ROOT = Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        '--out',
        type=Path,
        default=Path('work_dirs/demo'),
        help='folder for the results; an earlier demonstration in it is '
        'deleted, any other content is refused (default: %(default)s)',
    )
    parser.add_argument(
        '--iters',
        type=int,
        help="iterations per run instead of the configs' 200",
    )
    args = parser.parse_args()
    # On the CPU everywhere: mmcv may have no operators for a GPU that is seen.
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    # Later than the help text, since it takes seconds.
    from inline_mm.errors import LaunchError

    from . import everything as demo

    try:
        demo.run_all(ROOT, args.out, args.iters)
    except (RuntimeError, ValueError) as error:
        raise LaunchError(error) from error


if __name__ == '__main__':
    with command('demo', 'stopped; the next call starts afresh'):
        main()

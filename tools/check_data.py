"""Check the data of a config, without training or testing anything.

Reads the annotation files and a sample of the images and masks, compares
them with the classes and heads of the config, and says what it found.
`tools/train.py` and `tools/test.py` do the same before they begin. The exit
code is 1 if something must be mended. CONFIG is a file or the name of a
config that comes with the package.
"""

import argparse

from _command import add_cfg_options, command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('config', help='file or name of a config')
    parser.add_argument(
        '--all',
        action='store_true',
        help='decode every image and mask, however long that takes, not 512 '
        'of each data set for at most 30 seconds',
    )
    add_cfg_options(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm import data_check
    from inline_mm.engine import launch

    cfg = launch.read_config(args.config, args.cfg_options)
    number = None if args.all else data_check.SAMPLE
    report = data_check.check_data(cfg, 'all', number)
    report.log()
    if report.faults:
        raise data_check.DataError(report.sentence())


if __name__ == '__main__':
    with command('check_data.py'):
        main()

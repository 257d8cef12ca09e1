"""Train a detector, a segmentor or a classifier.

The config's `default_scope` says which library runs it: mmdet, mmseg or
mmpretrain. CONFIG is a file or the name of a config that comes with the
package.
"""

import argparse

from _command import add_common_arguments, command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('config', help='file or name of a config')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='go on from this checkpoint, or from the newest whole one of the '
        'work folder if none is named; begins anew, with a warning, where '
        'the folder has none',
    )
    parser.add_argument(
        '--amp', action='store_true', help='train in mixed precision'
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate by the images per step',
    )
    add_common_arguments(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm import data_check
    from inline_mm.engine import launch, training

    cfg = launch.load_config(args)
    if args.amp:
        training.use_amp(cfg)
    if args.auto_scale_lr:
        training.use_auto_scale_lr(cfg)
    if args.resume:
        training.use_resume(cfg, args.resume)
    runner = launch.build_runner(cfg)
    data_check.check_before_run(runner.cfg, 'train')
    if args.resume:
        training.skip_initialisation(runner)
    runner.train()


if __name__ == '__main__':
    with command('train.py'):
        main()

"""Test a detector, a segmentor or a classifier.

The config's `default_scope` says which library runs it: mmdet, mmseg or
mmpretrain. CONFIG is a file or the name of a config that comes with the
package.
"""

import argparse
from copy import deepcopy

from _command import add_common_arguments, command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('config', help='file or name of a config')
    parser.add_argument('checkpoint', help='file or URL of the weights')
    parser.add_argument(
        '--out', metavar='FILE.pkl', help='write the predictions here'
    )
    parser.add_argument(
        '--result',
        metavar='FILE.json',
        help='write the metrics here, and what they were measured with',
    )
    parser.add_argument(
        '--show-dir', metavar='FOLDER', help='draw the predictions here'
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help='test-time augmentation, where the library has it for the model',
    )
    add_common_arguments(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm import data_check
    from inline_mm.engine import launch, testing
    from inline_mm.results import record
    from inline_mm.results.observing import ResultHook

    cfg = launch.load_config(args)
    if args.result:
        record.check_path(args.result)
        recipe = deepcopy(cfg)  # without what the options below change
    testing.use_checkpoint(cfg, args.checkpoint)
    if args.show_dir:
        testing.draw_predictions(cfg, args.show_dir)
    if args.tta:
        testing.use_tta(cfg)
    if args.out:
        testing.dump_predictions(cfg, args.out)
    runner = launch.build_runner(cfg)
    data_check.check_before_run(runner.cfg, 'test')
    runner.register_hook(testing.CompleteWeightsHook())
    if args.result:
        runner.register_hook(ResultHook())
    metrics = runner.test()
    if args.result:
        record.save(
            args.result, runner, metrics, recipe, args.checkpoint, args.tta
        )


if __name__ == '__main__':
    with command('test.py'):
        main()

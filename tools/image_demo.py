"""Predict on an image, a folder of images or a video, and draw the result.

For each picture the output folder gets a drawing (NAME.png), a record
(NAME.json: detections with boxes, scores and masks; shares of the classes;
or the best five classes) and, for a segmentor, the map of classes
(NAME.mask.png). Images turned by EXIF are read upright, as in training.
"""

import argparse

from _command import add_cfg_options, command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('input', help='an image, a folder or a video')
    parser.add_argument('config', help='file or name of a config')
    parser.add_argument('checkpoint', help='weights of a training run')
    parser.add_argument(
        '--out',
        default='work_dirs/image_demo',
        metavar='FOLDER',
        help='where results go (default: %(default)s)',
    )
    parser.add_argument(
        '--score',
        type=float,
        default=0.3,
        help='leave out detections below (default: %(default)s)',
    )
    add_cfg_options(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm.engine import launch, testing
    from inline_mm.predict import run as image_demo

    cfg = launch.read_config(args.config, args.cfg_options)
    testing.use_checkpoint(cfg, args.checkpoint)
    failures = image_demo.run(
        args.input, cfg, args.checkpoint, args.out, args.score
    )
    image_demo.report(failures)
    print(f'results are in {args.out}')


if __name__ == '__main__':
    with command('image_demo.py'):
        main()

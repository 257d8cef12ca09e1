"""Measure and draw what the attention of a backbone does on images.

examples:
  tools/analyze_attention.py inline-swin-tiny_8xb128_in1k inline-swin-tiny \\
      tests/data/coco/val2017
      published weights, downloaded
  tools/analyze_attention.py my_config.py work_dirs/my_config/epoch_12.pth \\
      street.jpg --points 0.5,0.5 320,200 --image-size 800

The folder gets attention.json (all numbers and how they are defined) and
  injectivity.png     do distinct queries keep distinct attention: subtraction
                      (InLine), division and softmax on the same features
  locality.png        share of the attention in 3x3, 5x5 and 7x7 tokens
  effective_rank.png  of the attention matrix and of the output
  maps_*.png          where chosen points attend, of the first 4 images
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
        'checkpoint',
        help='weights: of a training run, an official file, a URL or a '
        "published name; or 'random', to try without any",
    )
    parser.add_argument(
        'images', nargs='+', help='images and folders of images'
    )
    parser.add_argument(
        '--out',
        default='work_dirs/attention',
        metavar='FOLDER',
        help='where results go (default: %(default)s)',
    )
    parser.add_argument(
        '--points',
        nargs='+',
        default=['0.5,0.5', '0.67,0.67'],
        metavar='X,Y',
        help='points to draw maps of, from the upper left corner: shares of '
        "the image's sides, or pixels of the file (default: 0.5,0.5 "
        '0.67,0.67)',
    )
    parser.add_argument(
        '--queries',
        type=int,
        default=256,
        help='tokens of a map that are looked at; smaller maps are taken '
        'whole (default: %(default)s)',
    )
    parser.add_argument(
        '--image-size',
        type=int,
        default=224,
        metavar='PIXELS',
        help='shorter side of the images; their ratio is kept, sides are '
        'multiples of 32 (default: %(default)s)',
    )
    parser.add_argument(
        '--device', help='such as cpu or cuda:0 (default: a GPU, else cpu)'
    )
    add_cfg_options(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm.attention_maps.run import analyze
    from inline_mm.engine import launch

    cfg = launch.read_config(args.config, args.cfg_options)
    done = analyze(
        cfg,
        args.checkpoint,
        args.images,
        args.out,
        args.points,
        args.queries,
        args.image_size,
        args.device,
    )
    print(f'weights: {done.weights}')
    print(
        f'{len(done.files)} files are in {done.folder}, made in '
        f'{done.seconds:.0f} s: {", ".join(done.files)}'
    )


if __name__ == '__main__':
    with command('analyze_attention.py'):
        main()

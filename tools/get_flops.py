#!/usr/bin/env python
"""Count the parameters and multiply-adds of a config's model.

examples:
  tools/get_flops.py mask-rcnn_inline-swin-t_fpn_ms-crop-1x_coco
  tools/get_flops.py fpn_pvt-t_8xb4-40k_ade20k-512x512 --shape 512 2048

CONFIG is a file of any mmdet, mmseg or mmpretrain config, or the name of one
that comes with the package. Neither weights, data nor a GPU are needed.

One multiply-add counts as one, as in the papers' "FLOPs", for one image.
Matrix products and convolutions are counted, among them those of every kind
of attention and the dynamic 3x3 convolution; InLine attention head by head,
as the paper writes it down. Not counted: norms, softmax, activations,
pooling, interpolation, anything element-wise, and what a detector does with
its predictions.
"""

import argparse

from _command import add_cfg_options, command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'config', metavar='CONFIG', help='file or name of a config'
    )
    parser.add_argument(
        '--shape',
        nargs=2,
        type=int,
        metavar=('HEIGHT', 'WIDTH'),
        help='image size in pixels; by default 800 1280 for detectors, 512 '
        '512 for Semantic FPN, 512 2048 for UPerNet, else that of the config',
    )
    parser.add_argument(
        '--json', metavar='FILE.json', help='write the counts here as well'
    )
    add_cfg_options(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm.complexity import report as flops_report

    print(
        flops_report.report(
            args.config, args.shape, args.json, args.cfg_options
        )
    )


if __name__ == '__main__':
    with command('get_flops.py'):
        main()

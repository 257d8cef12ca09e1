"""Export a model to ONNX, and check the file with ONNX Runtime.

examples:
  tools/export_onnx.py inline-swin-tiny_8xb128_in1k inline-swin-tiny.pth \\
      --out swin.onnx
      a classifier
  tools/export_onnx.py fpn_inline-pvt-t_8xb4-40k_ade20k-512x512 \\
      iter_40000.pth --out pvt.onnx --fixed 512 512
      a segmentor for images of one size
  tools/export_onnx.py mask-rcnn_inline-pvt-t_fpn_1x_coco inline-pvt-tiny \\
      --out pvt.onnx --part backbone
      a backbone with published weights, downloaded

Batch and size of the images are free, the size unless --fixed. The input is
normalised images; mean, std, channel order, classes and what the outputs are
stand in the file's metadata. Of a detector, backbone and neck are exported.
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
        nargs='?',
        help='file of the weights, nothing pickled in it is executed; for a '
        'backbone also a URL or a published name; without it, what the '
        "config's init_cfg names, and the rest random",
    )
    parser.add_argument(
        '--out', required=True, metavar='FILE.onnx', help='the file to write'
    )
    parser.add_argument(
        '--part',
        choices=('whole', 'backbone'),
        default='whole',
        help='what to export (default: %(default)s)',
    )
    parser.add_argument(
        '--fixed',
        nargs=2,
        type=int,
        metavar=('HEIGHT', 'WIDTH'),
        help='the one size of images that the file takes',
    )
    add_cfg_options(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm.engine import launch
    from inline_mm.export.run import export_onnx

    cfg = launch.read_config(args.config, args.cfg_options)
    done = export_onnx(cfg, args.out, args.checkpoint, args.part, args.fixed)
    for (batch, height, width), deviation in done.deviations.items():
        print(
            f'batch {batch} of {height}x{width}: ONNX Runtime and torch '
            f'differ by {deviation:.1e} of the largest value'
        )
    print(f'weights: {done.weights}')
    print(f'outputs: {done.content}')
    print(f'wrote {done.path} for images of size: {done.size}')


if __name__ == '__main__':
    with command('export_onnx.py'):
        main()

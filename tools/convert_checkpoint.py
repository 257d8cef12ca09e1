#!/usr/bin/env python
"""Convert InLine checkpoints between the official names and ours.

examples:
  tools/convert_checkpoint.py max_acc.pth weights/
      an official file to weights/inline-swin-tiny_3rdparty_in1k_...pth
  tools/convert_checkpoint.py inline-pvt-small weights/ --keep-head
      download a published one, keep its classifier for mmpretrain
  tools/convert_checkpoint.py work_dirs/run/epoch_12.pth back.pth --to official
      the backbone of a trained detector under its official names

Nothing pickled in a file is executed. Training doesn't need conversion:
init_cfg=dict(type='InLinePretrained', checkpoint=...) takes the same files.
"""

import argparse

from _command import command


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'source',
        metavar='SRC',
        help='path, URL or published name: official files, or checkpoints of '
        'mmdet, mmseg and mmpretrain with an InLine backbone',
    )
    parser.add_argument(
        'target',
        metavar='DST',
        nargs='?',
        help='file (.pth or .safetensors), or folder (made if need be) for a '
        'name with variant, date and hash, where tensors that two variants '
        'share name both: inline-cswin-base-or-base-384_...; default: the '
        'current folder',
    )
    parser.add_argument(
        '--to',
        choices=('inline_mm', 'official'),
        default='inline_mm',
        help='names to write (default: %(default)s)',
    )
    parser.add_argument(
        '--key',
        help='entry of the file to take, such as model; default: averaged '
        'weights where there are any (state_dict_ema, model_ema), then '
        'state_dict, then model',
    )
    parser.add_argument(
        '--keep-head',
        action='store_true',
        help='keep the ImageNet classifier, as head.fc of mmpretrain',
    )
    parser.add_argument(
        '--safetensors',
        action='store_true',
        help='write .safetensors where DST is a folder',
    )
    parser.add_argument(
        '--force', action='store_true', help='replace an existing file'
    )
    return parser.parse_args()


def main():
    args = parse_args()
    # Later than the help text, since it takes seconds.
    from inline_mm.checkpoint import convert_file

    result = convert_file(
        args.source,
        args.target,
        official=args.to == 'official',
        key=args.key,
        keep_head=args.keep_head,
        suffix='.safetensors' if args.safetensors else '.pth',
        force=args.force,
    )
    entry = 'the file itself' if result.key is None else f'entry {result.key}'
    print(f'{result.variant}: {result.tensors} tensors, from {entry}')
    if result.dropped:
        print(f'left out: {", ".join(result.dropped)}')
    print(f'wrote {result.path}')


if __name__ == '__main__':
    with command('convert_checkpoint.py', 'stopped; nothing was written'):
        main()

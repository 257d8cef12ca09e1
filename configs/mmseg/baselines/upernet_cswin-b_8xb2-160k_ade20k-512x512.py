# UPerNet with CSwin-B on ADE20K, 160k iterations, the baseline of
# upernet_inline-cswin-b_8xb2-160k_ade20k-512x512.
#
# Recipe: its sibling's, with another backbone: our InLineCSwin with softmax
#   attention in every block and the published CSwin's depths. Drop path 0.6,
#   CSWin's.
# Paper: mIoU 51.10 (README of CSWin Transformer's segmentors).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_cswin-b_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-swin.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/cswin_160k.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/'
    'cswin_base_224.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineCSwin',
        arch=dict(
            embed_dims=96,
            depths=(2, 4, 32, 2),
            num_heads=(4, 8, 16, 32),
            inline_depths=(0, 0, 0, 0),
            softmax_window=(1, 2, 7, 7),
            pretrain_img_size=224,
        ),
        drop_path_rate=0.6,
        init_cfg=dict(type='InLinePretrained', checkpoint=checkpoint),
    ),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)

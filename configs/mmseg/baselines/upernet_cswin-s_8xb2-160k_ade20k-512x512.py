# UPerNet with CSwin-S on ADE20K, 160k iterations, the baseline of
# upernet_inline-cswin-s_8xb2-160k_ade20k-512x512.
#
# Recipe: its sibling's, with another backbone: our InLineCSwin with softmax
#   attention in every block and the published CSwin's depths. Drop path 0.4,
#   CSWin's.
# Paper: mIoU 50.40 (README of CSWin Transformer's segmentors).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_cswin-s_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-swin.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/cswin_160k.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/'
    'cswin_small_224.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineCSwin',
        arch=dict(
            embed_dims=64,
            depths=(2, 4, 32, 2),
            num_heads=(2, 4, 8, 16),
            inline_depths=(0, 0, 0, 0),
            softmax_window=(1, 2, 7, 7),
            pretrain_img_size=224,
        ),
        drop_path_rate=0.4,
        init_cfg=dict(type='InLinePretrained', checkpoint=checkpoint),
    ),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
)

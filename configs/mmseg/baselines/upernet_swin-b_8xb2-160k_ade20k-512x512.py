# UPerNet with Swin-B on ADE20K, 160k iterations, the baseline of
# upernet_inline-swin-b_8xb2-160k_ade20k-512x512.
#
# Recipe: its sibling's, with another backbone: mmseg's SwinTransformer. Drop
#   path 0.3, mmseg's.
# Paper: mIoU 48.13, mAcc 59.13 (table of ADE20K results in Agent Attention's
#   repository).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_swin-b_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-swin.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/swin_160k.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://download.openmmlab.com/mmsegmentation/v0.5/pretrain/swin/'
    'swin_base_patch4_window7_224_20220317-e9b98025.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='SwinTransformer',
        embed_dims=128,
        depths=[2, 2, 18, 2],
        num_heads=[4, 8, 16, 32],
        drop_path_rate=0.3,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    ),
    decode_head=dict(in_channels=[128, 256, 512, 1024]),
    auxiliary_head=dict(in_channels=512),
)

# UPerNet with Swin-T on ADE20K, 160k iterations, the baseline of
# upernet_inline-swin-t_8xb2-160k_ade20k-512x512.
#
# Recipe: its sibling's, with another backbone: mmseg's SwinTransformer. Drop
#   path 0.3, mmseg's.
# Paper: mIoU 44.51, mAcc 55.61 (table of ADE20K results in Agent Attention's
#   repository).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_swin-t_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-swin.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/swin_160k.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://download.openmmlab.com/mmsegmentation/v0.5/pretrain/swin/'
    'swin_tiny_patch4_window7_224_20220317-1cdeb081.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='SwinTransformer',
        embed_dims=96,
        depths=[2, 2, 6, 2],
        num_heads=[3, 6, 12, 24],
        drop_path_rate=0.3,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    )
)

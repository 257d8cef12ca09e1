# DINO with Swin-T on COCO, 12 epochs, the baseline of
# dino-4scale_inline-swin-t_8xb2-12e_coco.
#
# Recipe: its sibling's, with another backbone: mmdet's SwinTransformer. Drop
#   path 0.2, the same.
# Paper: no number known.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     dino-4scale_swin-t_8xb2-12e_coco 8
_base_ = 'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'

custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/'
    'swin_tiny_patch4_window7_224.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='SwinTransformer',
        embed_dims=96,
        depths=[2, 2, 6, 2],
        num_heads=[3, 6, 12, 24],
        out_indices=(1, 2, 3),
        drop_path_rate=0.2,
        convert_weights=True,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    ),
    neck=dict(in_channels=[192, 384, 768]),
)
auto_scale_lr = dict(enable=False)

# DINO with InLine-Swin-T on COCO, 12 epochs.
#
# Recipe: ours, not the paper's: mmdet's for ResNet-50. AdamW 1e-4 (backbone
#   1e-5), weight decay 1e-4, 8 GPUs x 2 images, multi-scale and crop, drop
#   path 0.2, float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     dino-4scale_inline-swin-t_8xb2-12e_coco 8
_base_ = 'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'

custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)

# The first map isn't used, so it isn't asked for.
model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineSwin',
        arch='tiny',
        out_indices=(1, 2, 3),
        drop_path_rate=0.2,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-swin-tiny'),
    ),
    neck=dict(in_channels=[192, 384, 768]),
)
auto_scale_lr = dict(enable=False)

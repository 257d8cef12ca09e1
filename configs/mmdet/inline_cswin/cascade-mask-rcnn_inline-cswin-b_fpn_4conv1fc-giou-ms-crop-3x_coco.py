# Cascade Mask R-CNN with InLine-CSwin-B on COCO, 36 epochs.
#
# Recipe: ours, not the paper's: that of InLine-Swin-B. AdamW 1e-4, weight
#   decay 0.05 (none for norms), 8 GPUs x 2 images, multi-scale and crop,
#   drop path 0.4, float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     cascade-mask-rcnn_inline-cswin-b_fpn_4conv1fc-giou-ms-crop-3x_coco 8
_base_ = [
    '../_base_/models/cascade-mask-rcnn_inline-swin_fpn_4conv1fc-giou.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/36e.py',
    '../_base_/schedules/cswin_adamw.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        type='InLineCSwin',
        arch='base',
        drop_path_rate=0.4,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-cswin-base'),
    ),
    neck=dict(in_channels=[96, 192, 384, 768]),
)

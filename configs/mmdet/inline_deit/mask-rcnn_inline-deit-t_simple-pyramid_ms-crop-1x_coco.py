# Mask R-CNN with InLine-DeiT-T on COCO, 12 epochs.
#
# Recipe: ours, not the paper's: ViTDet's simple pyramid, InLine-Swin's
#   training. AdamW 1e-4, weight decay 0.05 (none for the backbone's norms,
#   class token and position table), 8 GPUs x 2 images, multi-scale and crop,
#   drop path 0.1, float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_inline-deit-t_simple-pyramid_ms-crop-1x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-deit_simple-pyramid.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/12e.py',
    '../_base_/schedules/deit_adamw.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='tiny',
        drop_path_rate=0.1,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-deit-tiny'),
    ),
)

# Cascade Mask R-CNN with InLine-Swin-B on COCO, 36 epochs.
#
# Recipe: Agent Attention's for Agent-Swin-B (same authors, same baselines; the
#   InLine authors published no detection code). AdamW 1e-4, weight decay
#   0.05 (none for norms and bias tables), 8 GPUs x 2 images, multi-scale
#   and crop, drop path 0.4, float32.
# Paper: box AP 52.6, as third parties summarise it (secondary source).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     cascade-mask-rcnn_inline-swin-b_fpn_4conv1fc-giou-ms-crop-3x_coco 8
_base_ = [
    '../_base_/models/cascade-mask-rcnn_inline-swin_fpn_4conv1fc-giou.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/36e.py',
    '../_base_/schedules/swin_adamw.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='base',
        drop_path_rate=0.4,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-swin-base'),
    ),
    neck=dict(in_channels=[128, 256, 512, 1024]),
)

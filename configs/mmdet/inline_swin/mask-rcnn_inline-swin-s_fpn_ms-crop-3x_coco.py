# Mask R-CNN with InLine-Swin-S on COCO, 36 epochs.
#
# Recipe: Agent Attention's for Agent-Swin-S (same authors, same baselines; the
#   InLine authors published no detection code). AdamW 1e-4, weight decay
#   0.05 (none for norms and bias tables), 8 GPUs x 2 images, multi-scale
#   and crop, drop path 0.1, float32.
# Paper: no number that could be checked.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_inline-swin-s_fpn_ms-crop-3x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-swin_fpn.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/36e.py',
    '../_base_/schedules/swin_adamw.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='small',
        drop_path_rate=0.1,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-swin-small'),
    )
)

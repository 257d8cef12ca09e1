# Faster R-CNN with InLine-Swin-S on COCO, 12 epochs.
#
# Recipe: ours, not the paper's: that of its Mask R-CNN, without masks. AdamW
#   1e-4, weight decay 0.05 (none for norms and bias tables), 8 GPUs x 2
#   images, multi-scale and crop, drop path 0.1, float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     faster-rcnn_inline-swin-s_fpn_ms-crop-1x_coco 8
_base_ = [
    '../_base_/models/faster-rcnn_inline-swin_fpn.py',
    '../_base_/datasets/coco_detection_ms-crop.py',
    '../_base_/schedules/12e.py',
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

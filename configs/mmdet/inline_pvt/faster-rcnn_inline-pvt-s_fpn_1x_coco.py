# Faster R-CNN with InLine-PVT-S on COCO, 12 epochs.
#
# Recipe: ours, not the paper's: that of its Mask R-CNN, without masks. AdamW
#   2e-4, weight decay 1e-4, 8 GPUs x 2 images, one scale, drop path 0.2,
#   float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     faster-rcnn_inline-pvt-s_fpn_1x_coco 8
_base_ = [
    '../_base_/models/faster-rcnn_inline-pvt_fpn.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '../_base_/schedules/pvt_1x.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='small',
        drop_path_rate=0.2,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-pvt-small'),
    )
)

# Mask R-CNN with InLine-PVT-L on COCO, 12 epochs.
#
# Recipe: Agent Attention's for Agent-PVT-L (same authors, same baselines; the
#   InLine authors published no detection code). AdamW 2e-4, weight decay
#   1e-4, 8 GPUs x 2 images, one scale, drop path 0.2, float32.
# Paper: box AP 45.4, as third parties summarise it (secondary source).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_inline-pvt-l_fpn_1x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-pvt_fpn.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '../_base_/schedules/pvt_1x.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='large',
        drop_path_rate=0.2,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-pvt-large'),
    )
)

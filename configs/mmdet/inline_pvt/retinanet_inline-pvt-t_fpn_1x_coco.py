# RetinaNet with InLine-PVT-T on COCO, 12 epochs.
#
# Recipe: Agent Attention's for Agent-PVT-T (same authors, same baselines; the
#   InLine authors published no detection code). AdamW 1e-4, weight decay
#   1e-4, 8 GPUs x 2 images, one scale, drop path 0.1, float32.
# Paper: no number that could be checked.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     retinanet_inline-pvt-t_fpn_1x_coco 8
_base_ = [
    '../_base_/models/retinanet_inline-pvt_fpn.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '../_base_/schedules/pvt_1x.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='tiny',
        drop_path_rate=0.1,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-pvt-tiny'),
    )
)
optim_wrapper = dict(optimizer=dict(lr=1e-4))

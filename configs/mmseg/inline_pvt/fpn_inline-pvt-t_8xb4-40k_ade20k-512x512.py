# Semantic FPN with InLine-PVT-T on ADE20K, 40k iterations.
#
# Recipe: PVT's with Agent Attention's drop path for Agent-PVT-T (same authors;
#   the InLine authors published no segmentation code). AdamW 2e-4, weight
#   decay 1e-4, poly 0.9, 8 GPUs x 4 images (PVT's batch; Agent Attention's
#   files say 2 per GPU), drop path 0.1, float32.
# Paper: mIoU 39.16, mAcc 50.63,
#   as third parties summarise it (secondary source).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     fpn_inline-pvt-t_8xb4-40k_ade20k-512x512 8
_base_ = [
    '../_base_/models/fpn_inline-pvt.py',
    '../_base_/datasets/ade20k_8xb4.py',
    '../_base_/schedules/pvt_40k.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='tiny',
        drop_path_rate=0.1,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-pvt-tiny'),
    )
)

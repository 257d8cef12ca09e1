# Semantic FPN with InLine-PVT-M on ADE20K, 40k iterations.
#
# Recipe: PVT's with Agent Attention's drop path for Agent-PVT-M (same authors;
#   the InLine authors published no segmentation code). AdamW 2e-4, weight
#   decay 1e-4, poly 0.9, 8 GPUs x 4 images (PVT's batch; Agent Attention's
#   files say 2 per GPU), drop path 0.2, float32.
# Paper: no number that could be checked.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     fpn_inline-pvt-m_8xb4-40k_ade20k-512x512 8
_base_ = [
    '../_base_/models/fpn_inline-pvt.py',
    '../_base_/datasets/ade20k_8xb4.py',
    '../_base_/schedules/pvt_40k.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='medium',
        drop_path_rate=0.2,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-pvt-medium'),
    )
)

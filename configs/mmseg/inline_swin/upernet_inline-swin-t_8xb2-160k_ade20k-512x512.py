# UPerNet with InLine-Swin-T on ADE20K, 160k iterations.
#
# Recipe: Agent Attention's for Agent-Swin-T (same authors, same baselines; the
#   InLine authors published no segmentation code). AdamW 6e-5, weight decay
#   0.01 (none for norms and bias tables), linear warm-up, poly 1.0, 8 GPUs
#   x 2 images, drop path 0.3, float32.
# Paper: mIoU 45.57, mAcc 57.60,
#   as third parties summarise it (secondary source).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_inline-swin-t_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-swin.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/swin_160k.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='tiny',
        drop_path_rate=0.3,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-swin-tiny'),
    )
)

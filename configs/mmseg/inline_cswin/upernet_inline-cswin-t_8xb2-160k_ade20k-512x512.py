# UPerNet with InLine-CSwin-T on ADE20K, 160k iterations.
#
# Recipe: ours, not the paper's: CSWin's for CSWin-T. AdamW 6e-5, weight decay
#   0.01 (none for norms), linear warm-up, poly 1.0, 8 GPUs x 2 images, drop
#   path 0.3, float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_inline-cswin-t_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-swin.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/cswin_160k.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        type='InLineCSwin',
        arch='tiny',
        drop_path_rate=0.3,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-cswin-tiny'),
    ),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
)

# UPerNet with InLine-DeiT-B on ADE20K, 160k iterations.
#
# Recipe: ours, not the paper's: mmseg's feature pyramid, InLine-Swin's
#   training. AdamW 6e-5, weight decay 0.01 (none for norms, class token and
#   position table), linear warm-up, poly 1.0, 8 GPUs x 2 images, drop path
#   0.1, float32.
# Paper: no such row.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_inline-deit-b_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-deit.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/deit_160k.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='base',
        drop_path_rate=0.1,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-deit-base'),
    ),
    neck=dict(embed_dim=384),
    decode_head=dict(in_channels=[384, 384, 384, 384]),
    auxiliary_head=dict(in_channels=384),
)

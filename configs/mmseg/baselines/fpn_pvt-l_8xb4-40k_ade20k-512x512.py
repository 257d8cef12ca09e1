# Semantic FPN with PVT-L on ADE20K, 40k iterations, the baseline of
# fpn_inline-pvt-l_8xb4-40k_ade20k-512x512.
#
# Recipe: its sibling's, with another backbone: mmdet's
#   PyramidVisionTransformer. Drop path 0.1, PVT's.
# Paper: mIoU 43.49, mAcc 54.62 (table of ADE20K results in Agent Attention's
#   repository).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     fpn_pvt-l_8xb4-40k_ade20k-512x512 8
_base_ = [
    '../_base_/models/fpn_inline-pvt.py',
    '../_base_/datasets/ade20k_8xb4.py',
    '../_base_/schedules/pvt_40k.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/whai362/PVT/releases/download/v2/pvt_large.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmdet.PyramidVisionTransformer',
        num_layers=[3, 8, 27, 3],
        drop_path_rate=0.1,
        init_cfg=dict(checkpoint=checkpoint),
    )
)

# Mask R-CNN with PVT-L on COCO, 12 epochs, the baseline of
# mask-rcnn_inline-pvt-l_fpn_1x_coco.
#
# Recipe: its sibling's, with another backbone: mmdet's
#   PyramidVisionTransformer. Drop path 0.0, PVT's (PVT-L was published with 1
#   image per GPU at 1.43e-4).
# Paper: box AP 42.9, mask AP 39.5 (table of COCO results in Agent Attention's
#   repository).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_pvt-l_fpn_1x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-pvt_fpn.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '../_base_/schedules/pvt_1x.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/whai362/PVT/releases/download/v2/pvt_large.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='PyramidVisionTransformer',
        num_layers=[3, 8, 27, 3],
        drop_path_rate=0.0,
        init_cfg=dict(checkpoint=checkpoint),
    )
)

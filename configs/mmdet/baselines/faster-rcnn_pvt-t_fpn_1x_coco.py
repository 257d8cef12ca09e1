# Faster R-CNN with PVT-T on COCO, 12 epochs, the baseline of
# faster-rcnn_inline-pvt-t_fpn_1x_coco.
#
# Recipe: its sibling's, with another backbone: mmdet's
#   PyramidVisionTransformer. Drop path 0.1, that of its Mask R-CNN.
# Paper: no number known.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     faster-rcnn_pvt-t_fpn_1x_coco 8
_base_ = [
    '../_base_/models/faster-rcnn_inline-pvt_fpn.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '../_base_/schedules/pvt_1x.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = 'https://github.com/whai362/PVT/releases/download/v2/pvt_tiny.pth'
model = dict(
    backbone=dict(
        _delete_=True,
        type='PyramidVisionTransformer',
        num_layers=[2, 2, 2, 2],
        drop_path_rate=0.1,
        init_cfg=dict(checkpoint=checkpoint),
    )
)

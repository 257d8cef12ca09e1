# Faster R-CNN with Swin-T on COCO, 12 epochs, the baseline of
# faster-rcnn_inline-swin-t_fpn_ms-crop-1x_coco.
#
# Recipe: its sibling's, with another backbone: mmdet's SwinTransformer. Drop
#   path 0.1, that of its Mask R-CNN.
# Paper: no number known.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     faster-rcnn_swin-t_fpn_ms-crop-1x_coco 8
_base_ = [
    '../_base_/models/faster-rcnn_inline-swin_fpn.py',
    '../_base_/datasets/coco_detection_ms-crop.py',
    '../_base_/schedules/12e.py',
    '../_base_/schedules/swin_adamw.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/'
    'swin_tiny_patch4_window7_224.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='SwinTransformer',
        embed_dims=96,
        depths=[2, 2, 6, 2],
        num_heads=[3, 6, 12, 24],
        drop_path_rate=0.1,
        convert_weights=True,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    )
)

# Cascade Mask R-CNN with Swin-T on COCO, 12 epochs, the baseline of
# cascade-mask-rcnn_inline-swin-t_fpn_4conv1fc-giou-ms-crop-1x_coco.
#
# Recipe: its sibling's, with another backbone: mmdet's SwinTransformer. Drop
#   path 0.0, Swin's.
# Paper: box AP 48.1, mask AP 41.7 (table of COCO results in Agent Attention's
#   repository).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     cascade-mask-rcnn_swin-t_fpn_4conv1fc-giou-ms-crop-1x_coco 8
_base_ = [
    '../_base_/models/cascade-mask-rcnn_inline-swin_fpn_4conv1fc-giou.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
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
        drop_path_rate=0.0,
        convert_weights=True,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    )
)

# Mask R-CNN with Swin-T on COCO, 36 epochs, the baseline of
# mask-rcnn_inline-swin-t_fpn_ms-crop-3x_coco.
#
# Recipe: its sibling's, with another backbone: mmdet's SwinTransformer. Drop
#   path 0.2, Swin's.
# Paper: box AP 46.0, mask AP 41.6 (table of COCO results in Agent Attention's
#   repository).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_swin-t_fpn_ms-crop-3x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-swin_fpn.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/36e.py',
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
        drop_path_rate=0.2,
        convert_weights=True,
        init_cfg=dict(type='Pretrained', checkpoint=checkpoint),
    )
)

# Mask R-CNN with DeiT-S on COCO, 12 epochs, the baseline of
# mask-rcnn_inline-deit-s_simple-pyramid_ms-crop-1x_coco.
#
# Recipe: its sibling's, with another backbone: our InLineDeiT with softmax
#   attention and no local residual, of the published DeiT's width. Drop path
#   0.1, the same.
# Paper: no number known.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_deit-s_simple-pyramid_ms-crop-1x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-deit_simple-pyramid.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/12e.py',
    '../_base_/schedules/deit_adamw.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://dl.fbaipublicfiles.com/deit/deit_small_patch16_224-cd65a155.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineDeiT',
        arch=dict(
            embed_dims=384, depth=12, num_heads=6, pretrain_img_size=224
        ),
        drop_path_rate=0.1,
        normalization='softmax',
        local_residual=False,
        init_cfg=dict(type='InLinePretrained', checkpoint=checkpoint),
    ),
    neck=dict(in_channels=384),
)

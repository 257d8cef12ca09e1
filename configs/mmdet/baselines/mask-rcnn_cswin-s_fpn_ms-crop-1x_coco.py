# Mask R-CNN with CSwin-S on COCO, 12 epochs, the baseline of
# mask-rcnn_inline-cswin-s_fpn_ms-crop-1x_coco.
#
# Recipe: its sibling's, with another backbone: our InLineCSwin with softmax
#   attention in every block and the published CSwin's depths. Drop path 0.1,
#   the same.
# Paper: no number known.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     mask-rcnn_cswin-s_fpn_ms-crop-1x_coco 8
_base_ = [
    '../_base_/models/mask-rcnn_inline-swin_fpn.py',
    '../_base_/datasets/coco_instance_ms-crop.py',
    '../_base_/schedules/12e.py',
    '../_base_/schedules/cswin_adamw.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/'
    'cswin_small_224.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineCSwin',
        arch=dict(
            embed_dims=64,
            depths=(2, 4, 32, 2),
            num_heads=(2, 4, 8, 16),
            inline_depths=(0, 0, 0, 0),
            softmax_window=(1, 2, 7, 7),
            pretrain_img_size=224,
        ),
        drop_path_rate=0.1,
        init_cfg=dict(type='InLinePretrained', checkpoint=checkpoint),
    ),
    neck=dict(in_channels=[64, 128, 256, 512]),
)

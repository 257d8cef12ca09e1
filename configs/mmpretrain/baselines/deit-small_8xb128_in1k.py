# DeiT-S on ImageNet-1K at 224 pixels, the baseline of
# inline-deit-small_8xb128_in1k-288.
#
# Recipe: its sibling's, with another backbone: our InLineDeiT with softmax
#   attention and no local residual, of the published DeiT's width. Drop path
#   0.1, 224 pixels.
# Paper: no number known.
# Ours: neither trained nor evaluated here.
# Command:
#   tools/dist_train.sh \
#     deit-small_8xb128_in1k 8
_base_ = [
    '../_base_/models/inline-deit.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/deit_300e.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineDeiT',
        arch=dict(
            embed_dims=384, depth=12, num_heads=6, pretrain_img_size=224
        ),
        out_type='cls_token',
        drop_path_rate=0.1,
        normalization='softmax',
        local_residual=False,
    ),
    head=dict(in_channels=384),
)

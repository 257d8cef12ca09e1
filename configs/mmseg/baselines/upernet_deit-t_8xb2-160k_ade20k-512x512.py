# UPerNet with DeiT-T on ADE20K, 160k iterations, the baseline of
# upernet_inline-deit-t_8xb2-160k_ade20k-512x512.
#
# Recipe: its sibling's, with another backbone: our InLineDeiT with softmax
#   attention and no local residual, of the published DeiT's width. Drop path
#   0.1, the same.
# Paper: no number known.
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     upernet_deit-t_8xb2-160k_ade20k-512x512 8
_base_ = [
    '../_base_/models/upernet_inline-deit.py',
    '../_base_/datasets/ade20k.py',
    '../_base_/schedules/deit_160k.py',
    '../_base_/default_runtime.py',
]

# Fetched on first use; or a file.
checkpoint = (
    'https://dl.fbaipublicfiles.com/deit/deit_tiny_patch16_224-a1311bcf.pth'
)
model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineDeiT',
        arch=dict(
            embed_dims=192, depth=12, num_heads=3, pretrain_img_size=224
        ),
        out_indices=(2, 5, 8, 11),
        drop_path_rate=0.1,
        normalization='softmax',
        local_residual=False,
        init_cfg=dict(type='InLinePretrained', checkpoint=checkpoint),
    )
)

# CSwin-T on ImageNet-1K at 224 pixels, the baseline of
# inline-cswin-tiny_8xb128_in1k.
#
# Recipe: its sibling's, with another backbone: our InLineCSwin with softmax
#   attention in every block and the published CSwin's depths. Drop path 0.2.
# Paper: top-1 82.7 (figure of ImageNet accuracies in the InLine authors'
#   repository).
# Ours: neither trained nor evaluated here.
# Command:
#   tools/dist_train.sh \
#     cswin-tiny_8xb128_in1k 8
_base_ = [
    '../_base_/models/inline-cswin.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/cswin_310e.py',
    '../_base_/ema.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineCSwin',
        arch=dict(
            embed_dims=64,
            depths=(1, 2, 21, 1),
            num_heads=(2, 4, 8, 16),
            inline_depths=(0, 0, 0, 0),
            softmax_window=(1, 2, 7, 7),
            pretrain_img_size=224,
        ),
        out_indices=(3,),
        drop_path_rate=0.2,
    )
)

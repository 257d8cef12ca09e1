# The run of mask-rcnn_inline-pvt_fpn_shapes-64x64 with a small InLine-Swin;
# InLine in the stages of InLine-Swin-T.
_base_ = './mask-rcnn_inline-pvt_fpn_shapes-64x64.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='InLineSwin',
        arch=dict(
            embed_dims=24,
            depths=(2, 2, 2, 2),
            num_heads=(1, 2, 4, 8),
            inline_depths=(2, 2, 2, 0),
            softmax_window=7,
            pretrain_img_size=64,
        ),
        drop_path_rate=0.0,
    )
)

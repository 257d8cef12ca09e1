# The run of mask-rcnn_inline-pvt_fpn_shapes-64x64 with mmdet's PVT, as wide
# and deep.
_base_ = './mask-rcnn_inline-pvt_fpn_shapes-64x64.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='PyramidVisionTransformer',
        pretrain_img_size=64,
        embed_dims=24,
        num_layers=[2, 2, 2, 2],
        num_heads=[1, 2, 4, 8],
        mlp_ratios=[4, 4, 4, 4],
        drop_path_rate=0.0,
    )
)

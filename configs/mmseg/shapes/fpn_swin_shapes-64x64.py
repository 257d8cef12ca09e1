# The run of fpn_inline-swin_shapes-64x64 with mmdet's Swin, as wide and deep.
_base_ = './fpn_inline-pvt_shapes-64x64.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmdet.SwinTransformer',
        embed_dims=24,
        depths=[2, 2, 2, 2],
        num_heads=[1, 2, 4, 8],
        drop_path_rate=0.0,
    )
)

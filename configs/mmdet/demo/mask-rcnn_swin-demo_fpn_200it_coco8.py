"""The demonstration with mmdet's own SwinTransformer, as small as it.

    python tools/train.py \
        configs/mmdet/demo/mask-rcnn_swin-demo_fpn_200it_coco8.py
"""

_base_ = './mask-rcnn_inline-pvt-demo_fpn_200it_coco8.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='SwinTransformer',
        embed_dims=32,
        depths=[2, 2, 2, 2],
        num_heads=[1, 2, 4, 8],
        drop_path_rate=0.0,
    )
)

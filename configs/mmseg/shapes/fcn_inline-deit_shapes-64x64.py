# A small InLine-DeiT with a plain head on generated shapes: one of the runs of
# `python -m experiments ablations`, which draws the data and trains them.
#
# Images are enlarged to 256 pixels, so that the patches of 16 pixels become a
# grid of 16x16 tokens; labels in training likewise. The head looks at each
# token by itself: whatever mixes tokens is the backbone.
_base_ = './fpn_inline-pvt_shapes-64x64.py'

size = (256, 256)
model = dict(
    data_preprocessor=dict(size=size),
    backbone=dict(
        _delete_=True,
        type='InLineDeiT',
        arch=dict(embed_dims=128, depth=6, num_heads=4, pretrain_img_size=256),
        drop_path_rate=0.0,
    ),
    neck=None,
    decode_head=dict(
        _delete_=True,
        type='FCNHead',
        in_channels=128,
        in_index=0,
        channels=128,
        num_convs=1,
        kernel_size=1,
        concat_input=False,
        dropout_ratio=0.0,
        num_classes=5,
        norm_cfg=dict(type='BN'),
        align_corners=False,
        loss_decode=dict(
            type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0
        ),
    ),
)

load = dict(type='LoadImageFromFile')
resize = dict(type='Resize', scale=size)
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            load,
            dict(type='LoadAnnotations'),
            resize,
            dict(type='RandomFlip', prob=0.5),
            dict(type='PackSegInputs'),
        ]
    )
)
# What is predicted goes back to the size of the file, where it is measured.
pipeline = [
    load,
    resize,
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
val_dataloader = dict(dataset=dict(pipeline=pipeline))
test_dataloader = val_dataloader

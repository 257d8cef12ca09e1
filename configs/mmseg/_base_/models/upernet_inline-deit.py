# Four blocks' maps, all at stride 16, become strides 4, 8, 16, 32.
_base_ = './upernet_inline-swin.py'

model = dict(
    backbone=dict(type='InLineDeiT', out_indices=(2, 5, 8, 11)),
    neck=dict(
        type='Feature2Pyramid',
        embed_dim=192,
        rescales=[4, 2, 1, 0.5],
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[192, 192, 192, 192]),
    auxiliary_head=dict(in_channels=192),
)

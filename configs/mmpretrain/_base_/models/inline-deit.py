# The class token, not the mean of the map.
_base_ = './classifier.py'

model = dict(
    backbone=dict(type='InLineDeiT', arch='tiny', out_type='cls_token'),
    neck=None,
    head=dict(in_channels=192),
)

# One map at stride 16 becomes five, as in ViTDet.
_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'

model = dict(
    backbone=dict(_delete_=True, type='InLineDeiT', arch='tiny'),
    neck=dict(_delete_=True, type='SimplePyramid', in_channels=192),
)

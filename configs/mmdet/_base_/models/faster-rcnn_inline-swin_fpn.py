_base_ = 'mmdet::_base_/models/faster-rcnn_r50_fpn.py'

model = dict(
    backbone=dict(_delete_=True, type='InLineSwin', arch='tiny'),
    neck=dict(in_channels=[96, 192, 384, 768]),
)

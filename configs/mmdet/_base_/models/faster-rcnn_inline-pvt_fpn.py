_base_ = 'mmdet::_base_/models/faster-rcnn_r50_fpn.py'

model = dict(
    backbone=dict(_delete_=True, type='InLinePVT', arch='tiny'),
    neck=dict(in_channels=[64, 128, 320, 512]),
)

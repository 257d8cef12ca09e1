# The last map alone: other norms would get no gradient.
_base_ = './classifier.py'

model = dict(
    backbone=dict(type='InLineCSwin', arch='tiny', out_indices=(3,)),
    head=dict(in_channels=512),
)

# The last map alone: other norms would get no gradient.
_base_ = './classifier.py'

model = dict(backbone=dict(type='InLineSwin', arch='tiny', out_indices=(3,)))

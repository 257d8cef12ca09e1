# COCO with multi-scale training and crops.
_base_ = ['mmdet::_base_/datasets/coco_instance.py', './ms-crop.py']

train_pipeline = [
    dict(type='LoadImageFromFile', backend_args={{_base_.backend_args}}),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='RandomFlip', prob=0.5),
    {{_base_.ms_crop}},
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

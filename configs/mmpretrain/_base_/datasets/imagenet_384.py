# ImageNet-1K at 384 pixels with the augmentation of DeiT and Swin. Data in
# mmpretrain's layout under data/imagenet: train/ and val/ with a folder per
# class, or with meta/train.txt and meta/val.txt.
_base_ = 'mmpretrain::_base_/datasets/imagenet_bs64_swin_224.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1].scale = 384
# The whole image, as Swin is tested at 384 pixels.
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=384, backend='pillow', interpolation='bicubic'),
    dict(type='PackInputs'),
]

# Images of a batch have one size here, so that they don't affect each other.
train_dataloader = dict(batch_size=64, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=64, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

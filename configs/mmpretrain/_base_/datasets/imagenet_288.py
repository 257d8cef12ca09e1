# ImageNet-1K at 288 pixels with the augmentation of DeiT and Swin. Data in
# mmpretrain's layout under data/imagenet: train/ and val/ with a folder per
# class, or with meta/train.txt and meta/val.txt.
_base_ = 'mmpretrain::_base_/datasets/imagenet_bs64_swin_224.py'

train_pipeline = _base_.train_pipeline
train_pipeline[1].scale = 288
# The crop takes 7/8 of the short side, as usual at 224 pixels.
test_pipeline = _base_.test_pipeline
test_pipeline[1].scale = 329
test_pipeline[2].crop_size = 288

# Images of a batch have one size here, so that they don't affect each other.
train_dataloader = dict(batch_size=128, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=128, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

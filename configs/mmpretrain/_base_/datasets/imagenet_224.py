# ImageNet-1K at 224 pixels with the augmentation of DeiT and Swin. Data in
# mmpretrain's layout under data/imagenet: train/ and val/ with a folder per
# class, or with meta/train.txt and meta/val.txt.
_base_ = 'mmpretrain::_base_/datasets/imagenet_bs64_swin_224.py'

# Images of a batch have one size here, so that they don't affect each other.
train_dataloader = dict(batch_size=128)
val_dataloader = dict(batch_size=128)
test_dataloader = val_dataloader

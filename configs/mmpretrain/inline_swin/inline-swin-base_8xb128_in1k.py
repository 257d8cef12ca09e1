# InLine-Swin-B on ImageNet-1K at 224 pixels.
#
# Recipe: the authors'. 300 epochs, AdamW 1e-3 for 8 GPUs x 128 images, weight
#   decay 0.05 (none for norms, biases and bias tables), 20 epochs of warm-up,
#   cosine, gradient clip 5, mixup 0.8, cutmix 1.0, RandAugment, random erasing
#   0.25, label smoothing 0.1, drop path 0.5. Test crop: the customary 7/8,
#   theirs isn't known to us.
# Paper: top-1 84.1 (the authors' README).
# Ours: neither trained nor evaluated here.
# Command:
#   tools/dist_train.sh \
#     inline-swin-base_8xb128_in1k 8
_base_ = [
    '../_base_/models/inline-swin.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/swin_300e.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(arch='base', drop_path_rate=0.5),
    head=dict(in_channels=1024),
)

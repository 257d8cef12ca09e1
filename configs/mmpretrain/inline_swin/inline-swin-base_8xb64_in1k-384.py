# InLine-Swin-B on ImageNet-1K at 384 pixels.
#
# Recipe: Swin's fine-tuning of its own weights (30 epochs, AdamW 2e-5 for 512
#   images, warm-up of 5 epochs) with the authors' weight decay 1e-8 and drop
#   path 0.5; the rest of theirs isn't known to us. The backbone starts from
#   224 pixels, the classifier anew. To keep a classifier: head.init_cfg=
#   dict(type='Pretrained', checkpoint=FILE, prefix='head.'), where FILE is
#   converted with --keep-head.
# Paper: no number that could be checked.
# Ours: neither trained nor evaluated here.
# Command:
#   tools/dist_train.sh \
#     inline-swin-base_8xb64_in1k-384 8
_base_ = [
    '../_base_/models/inline-swin.py',
    '../_base_/datasets/imagenet_384.py',
    '../_base_/schedules/finetune_30e.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='base-384',
        drop_path_rate=0.5,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-swin-base'),
    ),
    head=dict(in_channels=1024),
)
optim_wrapper = dict(clip_grad=dict(max_norm=5.0))

# InLine-CSwin-B on ImageNet-1K at 384 pixels.
#
# Recipe: Swin's fine-tuning of its own weights (30 epochs, AdamW 2e-5 for 512
#   images, warm-up of 5 epochs) with the authors' weight decay 1e-8 and drop
#   path 0.7; the rest of theirs isn't known to us. The backbone starts from
#   224 pixels, the classifier anew. To keep a classifier: head.init_cfg=
#   dict(type='Pretrained', checkpoint=FILE, prefix='head.'), where FILE is
#   converted with --keep-head.
# Paper: top-1 85.7 (a figure of the paper).
# Ours: neither trained nor evaluated here.
# Command:
#   tools/dist_train.sh \
#     inline-cswin-base_8xb64_in1k-384 8
_base_ = [
    '../_base_/models/inline-cswin.py',
    '../_base_/datasets/imagenet_384.py',
    '../_base_/schedules/finetune_30e.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        arch='base-384',
        drop_path_rate=0.7,
        init_cfg=dict(type='InLinePretrained', checkpoint='inline-cswin-base'),
    ),
    head=dict(in_channels=768),
)
# (0.9996)^(512 / 4096) = 0.99995
custom_hooks = [dict(type='EMAHook', momentum=5e-5, priority='ABOVE_NORMAL')]

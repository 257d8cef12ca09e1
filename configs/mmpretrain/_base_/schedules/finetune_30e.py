# 30 epochs from weights of 224 pixels, as Swin is fine-tuned: learning rate
# 2e-5 per 512 images, here 8 GPUs x 64.
_base_ = './adamw_300e.py'

train_cfg = dict(max_epochs=30)

optim_wrapper = dict(optimizer=dict(lr=2e-5, weight_decay=1e-8))
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=1e-3,
        by_epoch=True,
        begin=0,
        end=5,
        convert_to_iter_based=True,
    ),
    dict(
        type='CosineAnnealingLR',
        eta_min=2e-7,
        by_epoch=True,
        begin=5,
        end=30,
        convert_to_iter_based=True,
    ),
]

auto_scale_lr = dict(base_batch_size=512)

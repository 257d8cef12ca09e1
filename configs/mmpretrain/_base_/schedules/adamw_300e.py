# 300 epochs with AdamW: learning rate 5e-4 per 512 images, here 8 GPUs x 128.
# Norms, biases and whatever else has one dimension don't decay.
train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='AdamW', lr=1e-3, betas=(0.9, 0.999), weight_decay=0.05
    ),
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=1e-3,
        by_epoch=True,
        begin=0,
        end=20,
        convert_to_iter_based=True,
    ),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-5,
        by_epoch=True,
        begin=20,
        end=300,
        convert_to_iter_based=True,
    ),
]

auto_scale_lr = dict(enable=False, base_batch_size=1024)

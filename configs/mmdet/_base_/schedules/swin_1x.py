# 12 epochs with AdamW as the Swin detectors use it. Keys of `custom_keys` are
# matched as substrings of parameter names; biases do decay in this recipe.
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=12, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

param_scheduler = [
    dict(
        type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500
    ),
    dict(
        type='MultiStepLR',
        begin=0,
        end=12,
        by_epoch=True,
        milestones=[8, 11],
        gamma=0.1,
    ),
]

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='AdamW', lr=1e-4, betas=(0.9, 0.999), weight_decay=0.05
    ),
    paramwise_cfg=dict(
        custom_keys={
            'norm': dict(decay_mult=0.0),
            'relative_position_bias_table': dict(decay_mult=0.0),
        }
    ),
)

# 8 GPUs x 2 images
auto_scale_lr = dict(enable=False, base_batch_size=16)

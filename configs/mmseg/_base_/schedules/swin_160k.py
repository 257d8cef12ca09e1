# 160k iterations with AdamW as the Swin segmentors use it. Keys of
# `custom_keys` are matched as substrings of parameter names; biases do decay
# in this recipe.
train_cfg = dict(
    type='IterBasedTrainLoop', max_iters=160000, val_interval=16000
)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='AdamW', lr=6e-5, betas=(0.9, 0.999), weight_decay=0.01
    ),
    paramwise_cfg=dict(
        custom_keys={
            'norm': dict(decay_mult=0.0),
            'relative_position_bias_table': dict(decay_mult=0.0),
        }
    ),
)
param_scheduler = [
    dict(
        type='LinearLR', start_factor=1e-6, by_epoch=False, begin=0, end=1500
    ),
    dict(
        type='PolyLR',
        power=1.0,
        eta_min=0.0,
        begin=1500,
        end=160000,
        by_epoch=False,
    ),
]

default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=16000),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'),
)

# 8 GPUs x 2 images
auto_scale_lr = dict(enable=False, base_batch_size=16)

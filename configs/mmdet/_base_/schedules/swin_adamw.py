# AdamW as the Swin detectors use it. Keys of `custom_keys` are matched as
# substrings of parameter names; biases do decay in this recipe.
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

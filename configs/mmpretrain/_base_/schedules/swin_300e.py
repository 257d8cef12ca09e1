_base_ = './adamw_300e.py'

optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'relative_position_bias_table': dict(decay_mult=0.0)}
    ),
    clip_grad=dict(max_norm=5.0),
)

_base_ = './adamw_300e.py'

optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(
            cls_token=dict(decay_mult=0.0),
            pos_embed=dict(decay_mult=0.0),
        )
    ),
    clip_grad=dict(max_norm=5.0),
)

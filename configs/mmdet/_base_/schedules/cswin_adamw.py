# Swin's, without its rule for bias tables: this family has none.
_base_ = './swin_adamw.py'

optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(_delete_=True, norm=dict(decay_mult=0.0))
    )
)

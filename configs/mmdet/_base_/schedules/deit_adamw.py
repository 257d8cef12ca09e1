# Swin's, with rules for this family's tables.
_base_ = './swin_adamw.py'

optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(
            _delete_=True,
            norm=dict(decay_mult=0.0),
            cls_token=dict(decay_mult=0.0),
            pos_embed=dict(decay_mult=0.0),
        )
    )
)

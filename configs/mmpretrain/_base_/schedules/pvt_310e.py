# 5 epochs of warm-up; the last 10 stay at the lowest learning rate. Position
# tables do decay in this recipe.
_base_ = './adamw_300e.py'

train_cfg = dict(max_epochs=310)

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
        eta_min=1e-5,
        by_epoch=True,
        begin=5,
        end=300,
        convert_to_iter_based=True,
    ),
]

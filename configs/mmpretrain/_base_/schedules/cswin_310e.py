# The last 10 epochs stay at the lowest learning rate.
_base_ = './adamw_300e.py'

train_cfg = dict(max_epochs=310)

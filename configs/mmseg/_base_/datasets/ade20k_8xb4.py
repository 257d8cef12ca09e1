_base_ = './ade20k.py'

train_dataloader = dict(batch_size=4)

# Semantic FPN with a small InLine-PVT on generated shapes: one of the runs of
# python -m experiments, which draws the data and trains all of them.
#
# Everything is narrow and starts at random: minutes on a CPU, no recipe.
_base_ = [
    '../_base_/models/fpn_inline-pvt.py',
    '../_base_/default_runtime.py',
]

# Drawn classes after the background.
classes = (
    'background',
    'striped disk',
    'checked disk',
    'striped bar',
    'checked bar',
)
model = dict(
    data_preprocessor=dict(size=(64, 64)),
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=(24, 48, 96, 192),
            depths=(2, 2, 2, 2),
            num_heads=(1, 2, 4, 8),
            mlp_ratios=(4, 4, 4, 4),
            pretrain_img_size=64,
        ),
        drop_path_rate=0.0,
    ),
    neck=dict(in_channels=[24, 48, 96, 192], out_channels=32),
    decode_head=dict(
        in_channels=[32, 32, 32, 32],
        channels=32,
        dropout_ratio=0.0,
        num_classes=5,
        # SyncBN needs a GPU.
        norm_cfg=dict(type='BN'),
    ),
)

pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
dataset = dict(
    type='BaseSegDataset',
    data_root='data/shapes',
    img_suffix='.png',
    metainfo=dict(classes=classes),
)
train_dataloader = dict(
    batch_size=8,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        data_prefix=dict(img_path='train/images', seg_map_path='train/labels'),
        pipeline=[
            *pipeline[:2],
            dict(type='RandomFlip', prob=0.5),
            pipeline[2],
        ],
        **dataset,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        data_prefix=dict(img_path='val/images', seg_map_path='val/labels'),
        pipeline=pipeline,
        **dataset,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator

iterations = 700
# Tested once, at the end.
train_cfg = dict(
    type='IterBasedTrainLoop',
    max_iters=iterations,
    val_interval=iterations + 1,
)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.01),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, end=50),
    dict(
        type='CosineAnnealingLR',
        eta_min_ratio=0.01,
        by_epoch=False,
        begin=50,
        end=iterations,
    ),
]
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=20, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='CheckpointHook',
        by_epoch=False,
        interval=iterations,
        save_optimizer=False,
    ),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'),
)
log_processor = dict(window_size=20)

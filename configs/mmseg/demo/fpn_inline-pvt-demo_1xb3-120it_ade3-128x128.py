"""Semantic FPN with a small InLine-PVT on the 3 bundled ADE20K pairs.

A demonstration that learns within minutes on a CPU, not a recipe: everything
is narrow, images are squeezed to 128x128, and it is tested on the images it
was trained on. Nothing is loaded; weights start at random.

    python tools/train.py \
        configs/mmseg/demo/fpn_inline-pvt-demo_1xb3-120it_ade3-128x128.py
"""

_base_ = [
    '../_base_/models/fpn_inline-pvt.py',
    '../_base_/default_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(128, 128)),
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=(32, 64, 128, 256),
            depths=(1, 1, 1, 1),
            num_heads=(1, 2, 4, 8),
            mlp_ratios=(8, 8, 4, 4),
            pretrain_img_size=224,
        ),
        drop_path_rate=0.0,
    ),
    neck=dict(in_channels=[32, 64, 128, 256], out_channels=64),
    decode_head=dict(
        in_channels=[64, 64, 64, 64],
        channels=64,
        dropout_ratio=0.0,
        # SyncBN needs a GPU.
        norm_cfg=dict(type='BN'),
    ),
)

# The folder's place is given from here, so that any working directory does.
data_root = '{{ fileDirname }}/../../../tests/data/ade/'
resize = dict(type='Resize', scale=(128, 128), keep_ratio=False)
load_annotations = dict(type='LoadAnnotations', reduce_zero_label=True)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    load_annotations,
    resize,
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    load_annotations,
    dict(type='PackSegInputs'),
]
# The bundled pairs are of ADE20K's validation split.
dataset = dict(
    type='ADE20KDataset',
    data_root=data_root,
    data_prefix=dict(
        img_path='images/validation', seg_map_path='annotations/validation'
    ),
)
train_dataloader = dict(
    batch_size=3,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline, **dataset),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(pipeline=test_pipeline, test_mode=True, **dataset),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator

train_cfg = dict(type='IterBasedTrainLoop', max_iters=120, val_interval=30)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.01),
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=20),
    dict(
        type='CosineAnnealingLR',
        eta_min_ratio=0.01,
        by_epoch=False,
        begin=20,
        end=120,
    ),
]
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=10, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(
        type='CheckpointHook',
        by_epoch=False,
        interval=120,
        save_optimizer=False,
    ),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'),
)
log_processor = dict(window_size=10)
randomness = dict(seed=0)

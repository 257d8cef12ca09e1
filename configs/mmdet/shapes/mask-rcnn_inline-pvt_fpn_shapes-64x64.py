# Mask R-CNN with a small InLine-PVT on generated shapes: one of the runs of
# python -m experiments, which draws the data and trains all of them.
#
# Everything is narrow and starts at random: minutes on a CPU, no recipe.
_base_ = [
    '../_base_/models/mask-rcnn_inline-pvt_fpn.py',
    '../_base_/default_runtime.py',
]

classes = (
    'striped disk',
    'checked disk',
    'striped bar',
    'checked bar',
)
model = dict(
    data_preprocessor=dict(pad_size_divisor=32),
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
    rpn_head=dict(
        in_channels=32,
        feat_channels=32,
        # Forms are up to 34 pixels wide.
        anchor_generator=dict(scales=[4]),
    ),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=32, finest_scale=28),
        bbox_head=dict(in_channels=32, fc_out_channels=64, num_classes=4),
        mask_roi_extractor=dict(out_channels=32, finest_scale=28),
        mask_head=dict(
            num_convs=1, in_channels=32, conv_out_channels=32, num_classes=4
        ),
    ),
    train_cfg=dict(
        rpn=dict(sampler=dict(num=64)),
        rpn_proposal=dict(nms_pre=200, max_per_img=50),
        rcnn=dict(sampler=dict(num=32)),
    ),
    test_cfg=dict(
        rpn=dict(nms_pre=200, max_per_img=50), rcnn=dict(max_per_img=20)
    ),
)

load_annotations = dict(type='LoadAnnotations', with_bbox=True, with_mask=True)
dataset = dict(
    type='CocoDataset',
    data_root='data/shapes',
    metainfo=dict(classes=classes),
)
train_dataloader = dict(
    batch_size=8,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        ann_file='train/annotations.json',
        data_prefix=dict(img='train/images'),
        filter_cfg=dict(filter_empty_gt=True),
        pipeline=[
            dict(type='LoadImageFromFile'),
            load_annotations,
            dict(type='RandomFlip', prob=0.5),
            dict(type='PackDetInputs'),
        ],
        **dataset,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        ann_file='val/annotations.json',
        data_prefix=dict(img='val/images'),
        test_mode=True,
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='Resize', scale=(64, 64), keep_ratio=True),
            load_annotations,
            dict(
                type='PackDetInputs',
                meta_keys=(
                    'img_id',
                    'img_path',
                    'ori_shape',
                    'img_shape',
                    'scale_factor',
                ),
            ),
        ],
        **dataset,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(
    type='CocoMetric',
    ann_file='data/shapes/val/annotations.json',
    metric=['bbox', 'segm'],
)
test_evaluator = val_evaluator

iterations = 500
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
    logger=dict(interval=20, log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=iterations, save_optimizer=False),
)
log_processor = dict(window_size=20, by_epoch=False)

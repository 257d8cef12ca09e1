"""Mask R-CNN with a small InLine-PVT on the 8 bundled COCO images.

A demonstration that learns within minutes on a CPU, not a recipe: everything
is narrow, images are 160 pixels on their short side, and it is tested on the
images it was trained on. Nothing is loaded; weights start at random.

    python tools/train.py \
        configs/mmdet/demo/mask-rcnn_inline-pvt-demo_fpn_200it_coco8.py
"""

_base_ = [
    'mmdet::_base_/models/mask-rcnn_r50_fpn.py',
    'mmdet::_base_/default_runtime.py',
]
custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)

# The 18 of COCO's 80 categories that the 8 images show.
metainfo = dict(
    classes=(
        'person',
        'bird',
        'cat',
        'snowboard',
        'kite',
        'bottle',
        'wine glass',
        'bowl',
        'hot dog',
        'potted plant',
        'dining table',
        'laptop',
        'microwave',
        'oven',
        'sink',
        'book',
        'vase',
        'teddy bear',
    )
)
num_classes = 18

model = dict(
    backbone=dict(
        _delete_=True,
        type='InLinePVT',
        arch=dict(
            embed_dims=(32, 64, 128, 256),
            depths=(1, 1, 1, 1),
            num_heads=(1, 2, 4, 8),
            mlp_ratios=(8, 8, 4, 4),
            pretrain_img_size=224,
        ),
        drop_path_rate=0.0,
    ),
    neck=dict(in_channels=[32, 64, 128, 256], out_channels=64),
    rpn_head=dict(in_channels=64, feat_channels=64),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=64),
        bbox_head=dict(
            in_channels=64, fc_out_channels=256, num_classes=num_classes
        ),
        mask_roi_extractor=dict(out_channels=64),
        mask_head=dict(
            num_convs=2,
            in_channels=64,
            conv_out_channels=64,
            num_classes=num_classes,
        ),
    ),
    train_cfg=dict(
        rpn=dict(sampler=dict(num=64)),
        rpn_proposal=dict(nms_pre=500, max_per_img=100),
        rcnn=dict(sampler=dict(num=64)),
    ),
    test_cfg=dict(
        rpn=dict(nms_pre=500, max_per_img=100), rcnn=dict(max_per_img=30)
    ),
)

# The folder's place is given from here, so that any working directory does.
data_root = '{{ fileDirname }}/../../../tests/data/coco/'
resize = dict(type='Resize', scale=(1333, 160), keep_ratio=True)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    resize,
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='PackDetInputs'),
]
dataset = dict(
    type='CocoDataset',
    data_root=data_root,
    ann_file='annotations/instances_train2017.json',
    data_prefix=dict(img='train2017/'),
    metainfo=metainfo,
)
train_dataloader = dict(
    batch_size=2,
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
val_evaluator = dict(
    type='CocoMetric',
    ann_file=data_root + 'annotations/instances_train2017.json',
    metric=['bbox', 'segm'],
)
test_evaluator = val_evaluator

train_cfg = dict(type='IterBasedTrainLoop', max_iters=200, val_interval=50)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    paramwise_cfg=dict(norm_decay_mult=0.0, bias_decay_mult=0.0),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=30),
    dict(
        type='CosineAnnealingLR',
        eta_min_ratio=0.01,
        by_epoch=False,
        begin=30,
        end=200,
    ),
]
default_hooks = dict(
    logger=dict(interval=10, log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=200, save_optimizer=False),
)
log_processor = dict(window_size=10, by_epoch=False)
randomness = dict(seed=0)

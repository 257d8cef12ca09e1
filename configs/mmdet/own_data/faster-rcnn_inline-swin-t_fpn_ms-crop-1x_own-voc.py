# Faster R-CNN with InLine-Swin-T on boxes of one's own in Pascal VOC's form:
# copy this file, write your classes and folder, and let `_base_` point to a
# recipe.
# Command:
#   python tools/train.py \
#     faster-rcnn_inline-swin-t_fpn_ms-crop-1x_own-voc --auto-scale-lr
_base_ = '../inline_swin/faster-rcnn_inline-swin-t_fpn_ms-crop-1x_coco.py'

classes = ('red', 'green')  # the names in the xml files, spelt as there
# Annotations/*.xml, JPEGImages/*.jpg, and ImageSets/Main/{train,val}.txt with
# the files' names without suffix.
data_root = 'data/own/'

model = dict(roi_head=dict(bbox_head=dict(num_classes=len(classes))))
data = dict(
    _delete_=True,
    type='XMLDataset',
    data_root=data_root,
    data_prefix=dict(sub_data_root=''),
    metainfo=dict(classes=classes),
)
train_dataloader = dict(
    dataset=dict(
        ann_file='ImageSets/Main/train.txt',
        filter_cfg=dict(filter_empty_gt=True, min_size=32),
        pipeline=_base_.train_pipeline,
        **data,
    )
)
val_dataloader = dict(
    dataset=dict(
        ann_file='ImageSets/Main/val.txt',
        test_mode=True,
        pipeline=_base_.test_pipeline,
        **data,
    )
)
test_dataloader = val_dataloader
val_evaluator = dict(
    _delete_=True, type='VOCMetric', metric='mAP', eval_mode='area'
)
test_evaluator = val_evaluator
# For the hosts' own tools; those of this package check in any case.
custom_hooks = [dict(type='DataCheckHook')]

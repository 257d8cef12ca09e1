# Faster R-CNN with InLine-Swin-T on COCO-format boxes of one's own: copy this
# file, write your classes and folder, and let `_base_` point to a recipe.
# Command:
#   python tools/train.py \
#     faster-rcnn_inline-swin-t_fpn_ms-crop-1x_own --auto-scale-lr
_base_ = '../inline_swin/faster-rcnn_inline-swin-t_fpn_ms-crop-1x_coco.py'

classes = ('red', 'green')  # the names in the json files, in their order
data_root = 'data/own/'  # train.json, val.json, and the images' folders

model = dict(roi_head=dict(bbox_head=dict(num_classes=len(classes))))
data = dict(data_root=data_root, metainfo=dict(classes=classes))
train_dataloader = dict(
    dataset=dict(ann_file='train.json', data_prefix=dict(img='train/'), **data)
)
val_dataloader = dict(
    dataset=dict(ann_file='val.json', data_prefix=dict(img='val/'), **data)
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + 'val.json')
test_evaluator = val_evaluator
# For the hosts' own tools; those of this package check in any case.
custom_hooks = [dict(type='DataCheckHook')]

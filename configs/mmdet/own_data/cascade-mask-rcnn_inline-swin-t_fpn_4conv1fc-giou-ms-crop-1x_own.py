# Cascade Mask R-CNN with InLine-Swin-T on COCO-format data of one's own: copy
# this file, write your classes and folder, and let `_base_` point to a recipe.
# Command:
#   python tools/train.py --auto-scale-lr \
#     cascade-mask-rcnn_inline-swin-t_fpn_4conv1fc-giou-ms-crop-1x_own
_base_ = (
    '../inline_swin/'
    'cascade-mask-rcnn_inline-swin-t_fpn_4conv1fc-giou-ms-crop-1x_coco.py'
)

classes = ('red', 'green')  # the names in the json files, in their order
data_root = 'data/own/'  # train.json, val.json, and the images' folders

num_classes = len(classes)
model = dict(
    roi_head=dict(
        bbox_head=[
            dict(head, num_classes=num_classes)
            for head in _base_.model.roi_head.bbox_head
        ],
        mask_head=dict(num_classes=num_classes),
    )
)
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

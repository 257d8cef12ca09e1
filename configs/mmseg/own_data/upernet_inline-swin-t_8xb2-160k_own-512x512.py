# UPerNet with InLine-Swin-T on masks of one's own: copy this file, write your
# classes and folders, and let `_base_` point to a recipe. Masks are 8-bit gray
# PNG files, one for each image: 0 for the first class, 1 for the second and
# so on, 255 for pixels to ignore.
# Command:
#   python tools/train.py \
#     upernet_inline-swin-t_8xb2-160k_own-512x512 --auto-scale-lr
_base_ = '../inline_swin/upernet_inline-swin-t_8xb2-160k_ade20k-512x512.py'

classes = ('background', 'road')
data = dict(
    type='BaseSegDataset',
    data_root='data/own/',
    img_suffix='.jpg',
    metainfo=dict(classes=classes),
    reduce_zero_label=False,  # True: 0 is to ignore, classes begin with 1
)

num_classes = len(classes)
model = dict(
    decode_head=dict(num_classes=num_classes),
    auxiliary_head=dict(num_classes=num_classes),
)
train_dataloader = dict(
    dataset=dict(
        data_prefix=dict(img_path='images/train', seg_map_path='masks/train'),
        **data,
    )
)
val_dataloader = dict(
    dataset=dict(
        data_prefix=dict(img_path='images/val', seg_map_path='masks/val'),
        **data,
    )
)
test_dataloader = val_dataloader
# For the hosts' own tools; those of this package check in any case.
custom_hooks = [dict(type='DataCheckHook')]

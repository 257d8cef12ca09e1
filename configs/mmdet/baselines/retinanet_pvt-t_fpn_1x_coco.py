# RetinaNet with PVT-T on COCO, 12 epochs, the baseline of
# retinanet_inline-pvt-t_fpn_1x_coco.
#
# Recipe: mmdet's, which is PVT's: that of its sibling. AdamW 1e-4, weight
#   decay 1e-4, 8 GPUs x 2 images, one scale, drop path 0.1, float32.
# Paper: box AP 36.7 (READMEs of PVT).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     retinanet_pvt-t_fpn_1x_coco 8
_base_ = 'mmdet::pvt/retinanet_pvt-t_fpn_1x_coco.py'

custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)

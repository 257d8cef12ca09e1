# RetinaNet with PVT-L on COCO, 12 epochs, the baseline of
# retinanet_inline-pvt-l_fpn_1x_coco.
#
# Recipe: mmdet's, which is PVT's: that of its sibling, but for mixed
#   precision, which is left out. AdamW 1e-4, weight decay 1e-4, 8 GPUs x 2
#   images, one scale, drop path 0.1, float32.
# Paper: box AP 42.6 (READMEs of PVT).
# Ours: not trained here.
# Command:
#   tools/dist_train.sh \
#     retinanet_pvt-l_fpn_1x_coco 8
_base_ = 'mmdet::pvt/retinanet_pvt-l_fpn_1x_coco.py'

custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)

optim_wrapper = dict(type='OptimWrapper')

"""The control of the demonstration: the same run, backbone left at random.

What this run reaches, neck and heads reach without any learning in the
backbone; only what the other run gains over it can be the backbone's.

    python tools/train.py \
        configs/mmdet/demo/mask-rcnn_inline-pvt-demo-frozen_fpn_200it_coco8.py
"""

_base_ = './mask-rcnn_inline-pvt-demo_fpn_200it_coco8.py'

model = dict(backbone=dict(frozen_stages=4))

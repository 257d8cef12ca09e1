# The multi-scale and crop augmentation of DETR and Sparse R-CNN, which the
# Swin detectors use at every schedule.
short_sides = [(side, 1333) for side in range(480, 801, 32)]
ms_crop = dict(
    type='RandomChoice',
    transforms=[
        [dict(type='RandomChoiceResize', scales=short_sides, keep_ratio=True)],
        [
            dict(
                type='RandomChoiceResize',
                scales=[(400, 1333), (500, 1333), (600, 1333)],
                keep_ratio=True,
            ),
            dict(
                type='RandomCrop',
                crop_type='absolute_range',
                crop_size=(384, 600),
                allow_negative_crop=True,
            ),
            dict(
                type='RandomChoiceResize', scales=short_sides, keep_ratio=True
            ),
        ],
    ],
)

"""`TrueSizeHook` in the hosts' models and mmengine's runner."""

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from mmengine.structures import PixelData
from small_archs import ARCHS, output_grids
from tiny import DET, SEG, build_model, shrink

from inline_mm.engine import use_true_sizes
from inline_mm.engine.launch import find_config

SIZES = [(64, 96), (50, 70)]


def small_model(config):
    cfg = shrink(Config.fromfile(find_config(config)))
    name = cfg.model.backbone.type
    cfg.model.backbone.arch = ARCHS[name]
    channels = ARCHS[name]['embed_dims']
    if isinstance(channels, int):
        channels = [channels * 2**index for index in range(4)]
    if config == DET:
        cfg.model.neck.in_channels = list(channels)
    else:
        cfg.model.decode_head.update(in_channels=list(channels), channels=8)
        cfg.model.auxiliary_head.update(in_channels=channels[2], channels=8)
        cfg.model.data_preprocessor.size = (96, 96)
        cfg.model.data_preprocessor.batch_augments = None
        for key in ('decode_head', 'auxiliary_head'):
            cfg.model[key].norm_cfg = dict(type='BN')
    torch.manual_seed(0)
    return name, build_model(cfg).eval()


def batch_of(config, images):
    """What a loader of the host gives for these images."""
    if config == DET:
        from mmdet.testing import demo_mm_inputs

        batch = demo_mm_inputs(
            len(images), [list(i.shape) for i in images], with_mask=True
        )
    else:
        from mmseg.structures import SegDataSample

        batch = dict(data_samples=[])
        for image in images:
            size = tuple(image.shape[1:])
            sample = SegDataSample(
                metainfo=dict(img_shape=size, ori_shape=size)
            )
            mask = torch.zeros(1, *size, dtype=torch.long)
            sample.gt_sem_seg = PixelData(data=mask)
            batch['data_samples'].append(sample)
    return dict(batch, inputs=[i.clone() for i in images])


@pytest.mark.parametrize('config', [DET, SEG], ids=['mmdet', 'mmseg'])
def test_alone_equals_padded(config):
    name, model = small_model(config)
    images = [
        torch.randint(0, 255, (3, *size), dtype=torch.uint8) for size in SIZES
    ]
    seen = []
    model.backbone.register_forward_hook(lambda _, __, out: seen.append(out))
    use_true_sizes(model)
    for group in (images, images[1:]):
        data = model.data_preprocessor(batch_of(config, group), training=True)
        with torch.no_grad():
            model(**data, mode='loss')
    together, alone = seen
    grids = output_grids(name, SIZES[1])
    for left, right, (rows, columns) in zip(
        together, alone, grids, strict=True
    ):
        torch.testing.assert_close(
            left[1, :, :rows, :columns],
            right[0, :, :rows, :columns],
            rtol=0,
            atol=1e-4,
        )


def test_the_hook_attaches_to_the_runners_model(tmp_path):
    _, model = small_model(DET)
    runner = Runner(
        model,
        str(tmp_path),
        custom_hooks=[dict(type='TrueSizeHook')],
        default_scope='mmdet',
    )
    runner.call_hook('before_run')
    assert model.backbone._forward_pre_hooks

"""One training step of Mask R-CNN on real images reaches every parameter.

Heads alone can learn the bundled images, so a high AP doesn't show that a
backbone learns; this does.
"""

from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import Runner, set_random_seed

CONFIG = (
    Path(__file__).parents[2]
    / 'configs/mmdet/demo/mask-rcnn_inline-pvt-demo_fpn_200it_coco8.py'
)
SWIN = dict(
    type='InLineSwin',
    arch=dict(
        embed_dims=32,
        depths=(1, 1, 2, 2),
        num_heads=(1, 2, 4, 8),
        inline_depths=(1, 1, 1, 0),
        softmax_window=7,
        pretrain_img_size=224,
    ),
    drop_path_rate=0.0,
)


def thirds(name, grad):
    """Split the joint gradients of q, k and v."""
    if '.qkv.' not in name:
        return {name: grad}
    return {
        f'{name}[{part}]': value
        for part, value in zip('qkv', grad.chunk(3), strict=True)
    }


@pytest.mark.parametrize('backbone', [None, SWIN], ids=['pvt', 'swin'])
def test_one_step_moves_every_backbone_parameter(backbone):
    cfg = Config.fromfile(CONFIG)
    if backbone is not None:
        cfg.model.backbone = backbone
    # Decay would move a parameter without any gradient.
    cfg.optim_wrapper.optimizer.weight_decay = 0.0
    init_default_scope(cfg.default_scope)
    set_random_seed(0)
    model = MODELS.build(cfg.model)
    model.init_weights()
    model.train()
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    loader = Runner.build_dataloader(cfg.train_dataloader, seed=0)
    parameters = dict(model.backbone.named_parameters())
    before = {name: p.detach().clone() for name, p in parameters.items()}

    data = model.data_preprocessor(next(iter(loader)), True)
    loss, _ = model.parse_losses(model(**data, mode='loss'))
    optim_wrapper.backward(loss)

    parts = {}
    for name, parameter in parameters.items():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        parts.update(thirds(name, parameter.grad))
    for name, grad in parts.items():
        if name.endswith('qkv.bias[k]'):
            # A constant added to all keys cancels, in InLine attention by the
            # subtracted mean and in softmax by the division: rounding only.
            query = parts[name.replace('[k]', '[q]')]
            assert grad.abs().max() < 1e-3 * query.abs().max(), name
        else:
            assert grad.any(), name

    optim_wrapper.step()
    still = [n for n, p in parameters.items() if p.equal(before[n])]
    assert not still

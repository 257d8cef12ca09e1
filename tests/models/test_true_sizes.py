"""An image alone gives what it gives in a padded batch, if that is asked."""

import pytest
import torch
from mmengine.registry import MODELS
from mmengine.structures import BaseDataElement
from small_archs import ARCHS, output_grids
from torch import nn
from torch.nn import functional as F

from inline_mm.engine import use_true_sizes

SIZES = [(64, 96), (80, 65), (41, 33), (64, 96)]
FULL = (96, 128)


def build(name, **options):
    torch.manual_seed(0)
    return MODELS.build(dict(type=name, arch=ARCHS[name], **options)).eval()


def draw_images():
    torch.manual_seed(1)
    return [torch.randn(3, *size) for size in SIZES]


def pad(images, value=0.0):
    return torch.stack(
        [
            F.pad(
                image,
                (0, FULL[1] - image.shape[2], 0, FULL[0] - image.shape[1]),
                value=value,
            )
            for image in images
        ]
    )


class Model(nn.Module):
    """The call of mmengine's models, around a backbone."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone

    def forward(self, inputs, data_samples=None, mode='tensor'):
        return self.backbone(inputs)


def samples(sizes=SIZES):
    return [BaseDataElement(metainfo=dict(img_shape=size)) for size in sizes]


@pytest.mark.parametrize('name', ARCHS)
def test_alone_equals_padded(name):
    backbone = build(name)
    images = draw_images()
    model = Model(backbone)
    use_true_sizes(model)
    use_true_sizes(model)
    with torch.no_grad():
        maps = model(pad(images, value=7.0), data_samples=samples())
        for index, image in enumerate(images):
            alone = backbone(image[None])
            grids = output_grids(name, image.shape[1:])
            for out, want, (rows, columns) in zip(
                maps, alone, grids, strict=True
            ):
                got = out[index : index + 1]
                torch.testing.assert_close(
                    got[..., :rows, :columns], want, rtol=0, atol=1e-5
                )
                got[..., :rows, :columns] = 0
                assert not got.any(), 'something lies beyond the image'
    assert [tuple(m.shape[2:]) for m in maps] == output_grids(name, FULL)


@pytest.mark.parametrize('name', ARCHS)
def test_by_default_padding_counts_but_no_neighbour_does(name):
    backbone = build(name)
    batch = pad(draw_images())
    with torch.no_grad():
        maps = backbone(batch)
        alone = backbone(draw_images()[0][None])
        batch[1:] = torch.randn_like(batch[1:])
        changed = backbone(batch)
    rows, columns = output_grids(name, SIZES[0])[0]
    part = maps[0][:1, :, :rows, :columns]
    assert (part - alone[0]).abs().max() > 1e-3
    for before, after in zip(maps, changed, strict=True):
        torch.testing.assert_close(before[0], after[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize('name', ARCHS)
@pytest.mark.parametrize('options', [dict(with_cp=True), {}], ids=str)
def test_training_gradients_are_those_of_the_images(name, options):
    """Also with frozen stages and recomputed blocks."""
    backbone = build(name, frozen_stages=1, drop_path_rate=0.0, **options)
    backbone.train()
    images = draw_images()[:2]

    def gradients(maps):
        loss = sum(out.square().sum() for level in maps for out in level)
        parameters = [p for p in backbone.parameters() if p.requires_grad]
        return torch.autograd.grad(loss, parameters)

    model = Model(backbone)
    alone = gradients([backbone(image[None]) for image in images])
    use_true_sizes(model)
    padded = gradients([model(pad(images), samples(SIZES[:2]))])
    for left, right in zip(alone, padded, strict=True):
        size = right.abs().max().clamp(min=1)
        assert (left - right).abs().max() <= 1e-4 * size


def test_sizes_are_forgotten_after_a_failure():
    model = Model(build('InLineSwin'))
    use_true_sizes(model)
    batch = pad(draw_images())
    with pytest.raises(ValueError, match=r'4 pairs.*\(96, 128\), got'):
        model(batch, samples([(97, 10)] * 4))
    plain = model.backbone(batch)
    for left, right in zip(model(batch), plain, strict=True):
        assert torch.equal(left, right)


def test_a_model_without_inline_backbone_is_refused():
    with pytest.raises(ValueError, match='InLine backbone, got Model with Id'):
        use_true_sizes(Model(nn.Identity()))


def test_sliding_windows_are_refused():
    model = Model(build('InLineSwin'))
    model.test_cfg = dict(mode='slide')
    with pytest.raises(ValueError, match="mode='whole'"):
        use_true_sizes(model)

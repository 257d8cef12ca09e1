"""How a config's model is run to be counted: on what, and how far."""

from collections.abc import Iterator
from functools import partial

from mmengine.config import Config
from mmengine.structures import BaseDataElement, InstanceData
from torch import Tensor, nn

# Height and width that papers state their numbers for, in pixels.
DETECTOR = (800, 1280)
SEMANTIC_FPN = (512, 512)
UPERNET = (512, 2048)


def default_shape(cfg: Config) -> tuple[int, int]:
    """Size of the image that a config's model is counted for.

    Args:
        cfg (Config): a whole config.

    Returns:
        tuple[int, int]: height and width: 800x1280 for detectors, 512x512
        for Semantic FPN, 512x2048 for UPerNet; other segmentors' training
        crops; a classifier's test images.

    Raises:
        ValueError: if a config doesn't say.
    """
    scope = cfg.get('default_scope')
    if scope == 'mmdet':
        return DETECTOR
    if scope == 'mmseg':
        head = cfg.model.get('decode_head') or {}
        named = dict(FPNHead=SEMANTIC_FPN, UPerHead=UPERNET)
        if not isinstance(head, list) and head.get('type') in named:
            return named[head['type']]
        size = (cfg.model.get('data_preprocessor') or {}).get('size')
        sides = [size] if size else []
    else:
        sides = list(_sizes(_test_pipeline(cfg)))
    if not sides:
        raise ValueError(
            'the config does not say how large its images are; say it '
            '(--shape HEIGHT WIDTH)'
        )
    side = sides[-1]
    return (side, side) if isinstance(side, int) else tuple(side)


def _test_pipeline(cfg: Config) -> list:
    loader = cfg.get('test_dataloader') or {}
    return (loader.get('dataset') or {}).get('pipeline') or []


def _sizes(pipeline: list) -> Iterator[int | tuple[int, int]]:
    """Sizes that the transforms leave, the last one being the image's."""
    for transform in pipeline:
        if transform.get('type') in ('CenterCrop', 'RandomCrop'):
            yield transform['crop_size']
        elif transform.get('type') == 'Resize' and 'scale' in transform:
            scale = transform['scale']
            # mmcv's order is width, height.
            yield scale if isinstance(scale, int) else tuple(scale)[::-1]


def run(model: nn.Module, images: Tensor) -> list[str]:
    """Runs a model on images as far as its predictions before decoding.

    Args:
        model (nn.Module): of one of the hosts.
        images (Tensor): normalised images, (1, 3, H, W), also on 'meta'.

    Returns:
        list[str]: sentences on what was assumed.
    """
    if _is_region_based(model):
        return _run_by_regions(model, images)
    shape = tuple(images.shape[-2:])
    sizes = ('img_shape', 'ori_shape', 'pad_shape', 'batch_input_shape')
    sample = BaseDataElement(
        metainfo=dict.fromkeys(sizes, shape) | dict(scale_factor=(1.0, 1.0)),
        gt_instances=InstanceData(),
    )
    model(images, [sample], mode='tensor')
    return []


def _is_region_based(model: nn.Module) -> bool:
    """Whether it is a detector of mmdet's with boxes and masks by region."""
    head = getattr(model, 'roi_head', None)
    kinds = ('StandardRoIHead', 'CascadeRoIHead')
    return (
        type(head).__name__ in kinds
        and hasattr(model, 'rpn_head')
        and all(
            type(extractor).__name__ == 'SingleRoIExtractor'
            for extractor in _extractors(head)
        )
    )


def _extractors(head: nn.Module) -> list[nn.Module]:
    """Of a cascade, one for each stage."""
    found = [head.bbox_roi_extractor]
    if head.with_mask:
        found.append(head.mask_roi_extractor)
    return [
        extractor
        for entry in found
        for extractor in (
            entry if isinstance(entry, nn.ModuleList) else [entry]
        )
    ]


def _run_by_regions(model: nn.Module, images: Tensor) -> list[str]:
    """With as many regions as the test settings keep, whatever the image.

    How many boxes and masks there are in a real test depends on the image;
    this is the customary count. Which level a region is cut from changes
    nothing, so none is cut.
    """
    boxes = model.test_cfg.rpn.max_per_img
    masks = model.test_cfg.rcnn.max_per_img
    head = model.roi_head
    for extractor in _extractors(head):
        extractor.forward = partial(_cut_nothing, extractor)
    maps = model.extract_feat(images)
    model.rpn_head(maps)
    regions = images.new_zeros(boxes, 5)
    stages = getattr(head, 'num_stages', None)
    arguments = [()] if stages is None else [(i,) for i in range(stages)]
    for stage in arguments:
        head._bbox_forward(*stage, maps, regions)
        if head.with_mask:
            head._mask_forward(*stage, maps, regions[:masks])
    said = f'{boxes} regions go through the box head'
    if head.with_mask:
        said += f', {masks} through the mask head'
    if stages is not None:
        said += f', at each of the {stages} stages'
    return [f'{said}: the most that the test settings keep.']


def _cut_nothing(
    extractor: nn.Module, maps: tuple[Tensor, ...], regions: Tensor
) -> Tensor:
    size = extractor.roi_layers[0].output_size
    return maps[0].new_zeros(len(regions), extractor.out_channels, *size)

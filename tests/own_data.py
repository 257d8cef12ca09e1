"""Small data sets of one's own, configs for them, and what becomes of both.

The data are made in seconds: eight noise images with coloured rectangles, as
COCO-style objects ('red' and 'green', whose category ids are 7 and 3; image
number 7 has no object) and as masks (0 is 'other', 1 to 4 are classes).
"""

import copy
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
from mmengine.config import Config
from mmengine.registry import DATASETS
from PIL import Image
from tiny import DATA

from inline_mm.data_check import check_data
from inline_mm.data_check.config import transforms
from inline_mm.engine.launch import shipped_configs

SIZES = (
    *((96, 128), (128, 96), (100, 130), (64, 160)),
    *((111, 77), (128, 128), (90, 90), (160, 64)),
)
CASCADE = 'cascade-mask-rcnn_inline-swin-t_fpn_4conv1fc-giou-ms-crop-1x_own'
OWN = {
    'mask': 'mask-rcnn_inline-swin-t_fpn_ms-crop-1x_own',
    'cascade': CASCADE,
    'upernet': 'upernet_inline-swin-t_8xb2-160k_own-512x512',
    'fpn': 'fpn_inline-pvt-t_8xb4-40k_own-512x512',
    'faster': 'faster-rcnn_inline-swin-t_fpn_ms-crop-1x_own',
    'faster-voc': 'faster-rcnn_inline-swin-t_fpn_ms-crop-1x_own-voc',
}
CELLS = DATA / 'bccd'  # blood cells, in the forms of COCO and of VOC


def write_coco(root: Path) -> None:
    """Writes root/{train,val}.json and the images' folders."""
    rng = np.random.default_rng(0)
    for split in ('train', 'val'):
        (root / split).mkdir(parents=True, exist_ok=True)
        images, annotations = [], []
        for i, (h, w) in enumerate(SIZES):
            pixels = rng.integers(0, 60, (h, w, 3), np.uint8)
            name = f'{split}{i}.jpg'
            entry = dict(id=i + 1, file_name=name, height=h, width=w)
            images.append(entry)
            for j in range(0 if i == 6 else 2):
                bw, bh = (int(side) for side in rng.integers(20, 40, 2))
                x, y = int(rng.integers(w - bw)), int(rng.integers(h - bh))
                pixels[y : y + bh, x : x + bw, j] = 250
                right, low = x + bw, y + bh
                polygon = [x, y, right, y, right, low, x, low]
                annotations.append(
                    dict(
                        id=len(annotations) + 1,
                        image_id=i + 1,
                        category_id=(7, 3)[j],
                        bbox=[x, y, bw, bh],
                        area=bw * bh,
                        iscrowd=0,
                        segmentation=[polygon],
                    )
                )
            Image.fromarray(pixels).save(root / split / name, quality=95)
        names = dict(id=7, name='red'), dict(id=3, name='green')
        data = dict(images=images, annotations=annotations, categories=names)
        (root / f'{split}.json').write_text(json.dumps(data))


def write_masks(root: Path) -> None:
    """Writes root/{images,masks}/{train,val}."""
    rng = np.random.default_rng(0)
    for split in ('train', 'val'):
        for kind in ('images', 'masks'):
            (root / kind / split).mkdir(parents=True, exist_ok=True)
        for i, (h, w) in enumerate(SIZES):
            mask = np.zeros((h, w), np.uint8)
            top, left = slice(None, h // 2), slice(None, w // 2)
            low, right = slice(h // 2, h - 8), slice(w // 2, w - 8)
            mask[top, left], mask[top, w // 2 :] = 1, 2
            mask[h // 2 :, left], mask[low, right] = 3, 4
            image = mask[..., None] * 50 + rng.integers(0, 20, (h, w, 3))
            image = Image.fromarray(image.astype(np.uint8))
            image.save(root / 'images' / split / f'{i}.jpg')
            Image.fromarray(mask).save(root / 'masks' / split / f'{i}.png')


def load_own(kind: str, root: Path) -> Config:
    """The shipped own-data config of a kind, for the small data at `root`."""
    return point_to(copy.deepcopy(_read(kind)), root)


@lru_cache
def _read(kind: str) -> Config:
    return Config.fromfile(shipped_configs()[OWN[kind]])


def point_to(cfg: Config, root: Path) -> Config:
    """What a user writes into a copy: folder and, for masks, classes."""
    root = str(root)
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.data_root = root
        if cfg.default_scope == 'mmseg':
            dataset.metainfo = dict(classes=('a', 'b', 'c', 'd'))
            dataset.reduce_zero_label = True
    if cfg.default_scope == 'mmdet':
        for evaluator in (cfg.val_evaluator, cfg.test_evaluator):
            if evaluator.type == 'CocoMetric':
                evaluator.ann_file = f'{root}/val.json'
    else:
        for name in ('decode_head', 'auxiliary_head'):
            if name in cfg.model:
                cfg.model[name].num_classes = 4
    return cfg


def load_cells(kind: str) -> Config:
    """The shipped own-data config of a kind, for the bundled cells."""
    cfg = point_to(copy.deepcopy(_read(kind)), CELLS)
    for split in ('train', 'val', 'test'):
        dataset = cfg[f'{split}_dataloader'].dataset
        dataset.metainfo.classes = ('RBC', 'WBC', 'Platelets')
        if dataset.type == 'CocoDataset':
            dataset.data_prefix.img = 'JPEGImages/'
    for part in (cfg.model, cfg.model.get('roi_head', {})):
        if 'bbox_head' in part:
            part.bbox_head.num_classes = 3
    return cfg


def shrink(cfg: Config) -> Config:
    """Makes a narrow model and a run of two iterations out of it."""
    backbone, heads = cfg.model.backbone, cfg.model.get('roi_head')
    backbone.init_cfg = None
    arch = dict(depths=(1, 1, 1, 1), num_heads=(1, 1, 2, 2))
    if backbone.type == 'InLinePVT':
        arch.update(embed_dims=(16, 32, 64, 128), mlp_ratios=(2, 2, 2, 2))
    else:
        inline_depths = (1, 1, 1, 0)
        arch.update(embed_dims=16, inline_depths=inline_depths)
        arch.update(softmax_window=7)
    backbone.arch = dict(arch, pretrain_img_size=224)
    channels = [16, 32, 64, 128]
    if 'neck' in cfg.model:
        maps = len(cfg.model.neck.in_channels)
        cfg.model.neck.in_channels = channels[-maps:]
    if heads is not None:
        for head in _listed(heads.bbox_head):
            head.fc_out_channels = 32
        if 'mask_head' in heads:
            heads.mask_head.num_convs = 1
        for stage in _listed(cfg.model.train_cfg.rcnn):
            stage.sampler.num = 16
        cfg.model.train_cfg.rpn_proposal.max_per_img = 32
        cfg.model.test_cfg.rpn.max_per_img = 32
        cfg.model.test_cfg.rcnn.max_per_img = 5
    elif 'auxiliary_head' in cfg.model:
        cfg.model.decode_head.update(in_channels=channels, channels=16)
        cfg.model.auxiliary_head.update(in_channels=64, channels=16)
    if cfg.default_scope == 'mmseg':
        cfg.model.data_preprocessor.size = (64, 64)
    _shrink_run(cfg)
    return cfg


def _listed(stages) -> list:
    """The stages of a cascade, or the only one."""
    return stages if isinstance(stages, list) else [stages]


def _shrink_run(cfg: Config) -> None:
    sizes = dict(
        Resize=dict(scale=(128, 96)),
        RandomChoiceResize=dict(scales=[(96, 128), (64, 128)]),
        RandomResize=dict(scale=(256, 64)),
        RandomCrop=dict(crop_size=(64, 64)),
    )
    for split in ('train', 'val', 'test'):
        loader = cfg[f'{split}_dataloader']
        loader.update(num_workers=0, persistent_workers=False)
        for transform in transforms(loader.dataset.pipeline):
            transform.update(sizes.get(transform['type'], {}))
    cfg.train_cfg = dict(
        type='IterBasedTrainLoop', max_iters=2, val_interval=2
    )
    cfg.train_dataloader.update(batch_size=2)
    cfg.train_dataloader.sampler = dict(type='InfiniteSampler', shuffle=True)
    cfg.train_dataloader.pop('batch_sampler', None)
    cfg.param_scheduler = []
    cfg.default_hooks.logger.interval = 1
    cfg.default_hooks.checkpoint = dict(
        type='CheckpointHook', by_epoch=False, interval=2
    )
    cfg.log_processor = dict(by_epoch=False)


def edit_json(path: Path, change) -> None:
    """Changes an annotation file by a function of its content."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def faults(cfg: Config, mode: str = 'train') -> list[str]:
    """The faults that the check finds."""
    return check_data(cfg, mode).faults


def read_through(cfg: Config, split: str) -> int:
    """Builds a split's data set and takes every item through its pipeline."""
    with DATASETS.switch_scope_and_registry(cfg.default_scope) as registry:
        dataset = registry.build(cfg[f'{split}_dataloader'].dataset)
        for index in range(len(dataset)):
            assert dataset[index] is not None
    return len(dataset)

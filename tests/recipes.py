"""The shipped detection and segmentation recipes, and how configs are read."""

import math
import re
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DATASETS
from tiny import build_model, seed, shrink

from inline_mm.engine.launch import shipped_configs

# Millions of parameters by arithmetic on the published models and the heads,
# and the recipe's drop path rate.
RECIPES = {
    'mask-rcnn_inline-pvt-t_fpn_1x_coco': (31.69, 0.1),
    'mask-rcnn_inline-pvt-s_fpn_1x_coco': (41.21, 0.2),
    'mask-rcnn_inline-pvt-m_fpn_1x_coco': (57.27, 0.1),
    'mask-rcnn_inline-pvt-l_fpn_1x_coco': (70.81, 0.2),
    'mask-rcnn_inline-swin-t_fpn_ms-crop-1x_coco': (48.73, 0.1),
    'mask-rcnn_inline-swin-t_fpn_ms-crop-3x_coco': (48.73, 0.1),
    'mask-rcnn_inline-swin-s_fpn_ms-crop-1x_coco': (69.30, 0.1),
    'mask-rcnn_inline-swin-s_fpn_ms-crop-3x_coco': (69.30, 0.1),
    'cascade-mask-rcnn_inline-swin-t_fpn_4conv1fc-giou-ms-crop-1x_coco': (
        86.56,
        0.1,
    ),
    'cascade-mask-rcnn_inline-swin-t_fpn_4conv1fc-giou-ms-crop-3x_coco': (
        86.56,
        0.1,
    ),
    'cascade-mask-rcnn_inline-swin-s_fpn_4conv1fc-giou-ms-crop-3x_coco': (
        107.13,
        0.1,
    ),
    'cascade-mask-rcnn_inline-swin-b_fpn_4conv1fc-giou-ms-crop-3x_coco': (
        145.56,
        0.4,
    ),
    'mask-rcnn_inline-cswin-t_fpn_ms-crop-1x_coco': (40.24, 0.1),
    'mask-rcnn_inline-cswin-t_fpn_ms-crop-3x_coco': (40.24, 0.1),
    'mask-rcnn_inline-cswin-s_fpn_ms-crop-1x_coco': (52.67, 0.1),
    'mask-rcnn_inline-cswin-s_fpn_ms-crop-3x_coco': (52.67, 0.1),
    'cascade-mask-rcnn_inline-cswin-t_fpn_4conv1fc-giou-ms-crop-3x_coco': (
        78.08,
        0.1,
    ),
    'cascade-mask-rcnn_inline-cswin-s_fpn_4conv1fc-giou-ms-crop-3x_coco': (
        90.51,
        0.1,
    ),
    'cascade-mask-rcnn_inline-cswin-b_fpn_4conv1fc-giou-ms-crop-3x_coco': (
        130.76,
        0.4,
    ),
    'mask-rcnn_inline-deit-t_simple-pyramid_ms-crop-1x_coco': (26.49, 0.1),
    'mask-rcnn_inline-deit-s_simple-pyramid_ms-crop-1x_coco': (37.01, 0.1),
    'mask-rcnn_inline-deit-b_simple-pyramid_ms-crop-1x_coco': (44.25, 0.1),
    'faster-rcnn_inline-pvt-t_fpn_1x_coco': (29.04, 0.1),
    'faster-rcnn_inline-pvt-s_fpn_1x_coco': (38.57, 0.2),
    'faster-rcnn_inline-swin-t_fpn_ms-crop-1x_coco': (46.09, 0.1),
    'faster-rcnn_inline-swin-s_fpn_ms-crop-1x_coco': (66.66, 0.1),
    'retinanet_inline-pvt-t_fpn_1x_coco': (21.77, 0.1),
    'retinanet_inline-pvt-s_fpn_1x_coco': (31.29, 0.1),
    'retinanet_inline-pvt-m_fpn_1x_coco': (47.36, 0.2),
    'retinanet_inline-pvt-l_fpn_1x_coco': (60.89, 0.3),
    'dino-4scale_inline-swin-t_8xb2-12e_coco': (49.26, 0.2),
    'fpn_inline-pvt-t_8xb4-40k_ade20k-512x512': (15.79, 0.1),
    'fpn_inline-pvt-s_8xb4-40k_ade20k-512x512': (25.31, 0.1),
    'fpn_inline-pvt-m_8xb4-40k_ade20k-512x512': (41.37, 0.2),
    'fpn_inline-pvt-l_8xb4-40k_ade20k-512x512': (54.91, 0.1),
    'upernet_inline-swin-t_8xb2-160k_ade20k-512x512': (60.88, 0.3),
    'upernet_inline-swin-s_8xb2-160k_ade20k-512x512': (81.45, 0.3),
    'upernet_inline-swin-b_8xb2-160k_ade20k-512x512': (121.86, 0.5),
    'upernet_inline-cswin-t_8xb2-160k_ade20k-512x512': (50.40, 0.3),
    'upernet_inline-cswin-s_8xb2-160k_ade20k-512x512': (62.83, 0.4),
    'upernet_inline-cswin-b_8xb2-160k_ade20k-512x512': (105.07, 0.6),
    'upernet_inline-deit-t_8xb2-160k_ade20k-512x512': (34.82, 0.1),
    'upernet_inline-deit-s_8xb2-160k_ade20k-512x512': (47.08, 0.1),
    'upernet_inline-deit-b_8xb2-160k_ade20k-512x512': (55.29, 0.1),
}
SIZES = dict(t='tiny', s='small', m='medium', l='large', b='base')
# lr, weight decay, images per GPU, by algorithm and, where they differ, family
OPTIMISATION = {
    'mask-rcnn': (1e-4, 0.05, 2),
    'cascade-mask-rcnn': (1e-4, 0.05, 2),
    'mask-rcnn_inline-pvt': (2e-4, 1e-4, 2),
    'faster-rcnn_inline-pvt': (2e-4, 1e-4, 2),
    'faster-rcnn_inline-swin': (1e-4, 0.05, 2),
    'retinanet': (1e-4, 1e-4, 2),
    'dino-4scale': (1e-4, 1e-4, 2),
    'fpn': (2e-4, 1e-4, 4),
    'upernet': (6e-5, 0.01, 2),
}


def load(name: str) -> Config:
    """A shipped config."""
    return Config.fromfile(shipped_configs()[name])


def family_and_size(name: str) -> tuple[str, str]:
    """'pvt', 't' of a recipe's name."""
    return re.search(r'inline-(pvt|swin|cswin|deit)-([a-z])', name).groups()


def check_head_comment(name: str) -> None:
    """The comment says where the recipe and the numbers come from."""
    text = shipped_configs()[name].read_text()
    comment = re.match(r'(?:#.*\n)+', text).group()
    for entry in ('# Recipe: ', '# Paper: ', '# Ours: ', '# Command:'):
        assert entry in comment
    assert f' {name} 8\n' in comment


def inheritance_depth(path: Path) -> int:
    """Files from a config to its deepest base."""
    bases = Config._get_base_files(str(path))
    return 1 + max(
        (
            # A host's own bases aren't counted.
            1 if '::' in base else inheritance_depth(path.parent / base)
            for base in bases
        ),
        default=0,
    )


def weight_decays(model, cfg):
    """Weight decay by parameter name."""
    optimizer = build_optim_wrapper(model, cfg.optim_wrapper).optimizer
    names = {id(p): name for name, p in model.named_parameters()}
    return {
        names[id(p)]: group['weight_decay']
        for group in optimizer.param_groups
        for p in group['params']
    }


def check_one_step(name: str) -> None:
    """A step on two small images: finite losses, every weight moves."""
    seed()
    cfg = shrink(load(name))
    model = revert_sync_batchnorm(build_model(cfg))
    # Some parameters of DINO are whatever lay in memory until then.
    model.init_weights()
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    before = {
        n: p.detach().clone()
        for n, p in model.named_parameters()
        if p.ndim > 1
    }
    model.train()
    losses = model.train_step(
        pseudo_collate([dataset[0], dataset[1]]), optim_wrapper
    )
    for key, value in losses.items():
        assert math.isfinite(value.item()), key
    # A weight that stays where it was got no gradient at all, which stops
    # distributed training.
    still = [
        n
        for n, p in model.named_parameters()
        if p.ndim > 1 and torch.equal(p, before[n])
    ]
    # DINO's attention and box branches start with weights of zero, which let
    # none through to what comes before them.
    behind = ('level_embed', 'bbox_head.reg_branches.')
    if name.startswith('dino'):
        still = [n for n in still if not n.startswith(behind)]
    assert not still

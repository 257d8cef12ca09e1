"""Shipped configs cut down to seconds on one thread, on the bundled images."""

from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

DATA = Path(__file__).parent / 'data'
TOOLS = Path(__file__).parents[1] / 'tools'

DET = 'mask-rcnn_inline-pvt-t_fpn_1x_coco'
SEG = 'upernet_inline-swin-t_8xb2-160k_ade20k-512x512'

_LOADERS = [
    f'{split}_dataloader.{key}'
    for split in ('train', 'val', 'test')
    for key in ('num_workers=0', 'persistent_workers=False')
]
# What `--cfg-options` takes, so that the shipped files themselves are read.
OPTIONS = {
    DET: [
        *_LOADERS,
        'model.backbone.init_cfg=None',
        'model.backbone.arch._delete_=True',
        'model.backbone.arch.embed_dims=(32,32,64,64)',
        'model.backbone.arch.depths=(1,1,1,1)',
        'model.backbone.arch.num_heads=(1,1,2,2)',
        'model.backbone.arch.mlp_ratios=(2,2,2,2)',
        'model.backbone.arch.pretrain_img_size=224',
        'model.neck.in_channels=[32,32,64,64]',
        'model.roi_head.bbox_head.fc_out_channels=64',
        'model.roi_head.mask_head.num_convs=1',
        'model.roi_head.mask_head.conv_out_channels=32',
        'model.train_cfg.rcnn.sampler.num=32',
        'model.train_cfg.rpn_proposal.max_per_img=50',
        'model.test_cfg.rpn.max_per_img=50',
        'model.test_cfg.rcnn.score_thr=0.0',
        'model.test_cfg.rcnn.max_per_img=5',
        'train_dataloader.dataset.indices=4',
        'train_dataloader.dataset.pipeline.2.scale=(128,96)',
        'val_dataloader.dataset.pipeline.1.scale=(128,96)',
        'test_dataloader.dataset.pipeline.1.scale=(128,96)',
        'train_cfg.max_epochs=1',
        'default_hooks.logger.interval=1',
        'default_hooks.checkpoint.save_optimizer=False',
    ],
    SEG: [
        *_LOADERS,
        'model.backbone.init_cfg=None',
        'model.backbone.arch._delete_=True',
        'model.backbone.arch.embed_dims=16',
        'model.backbone.arch.depths=(1,1,2,1)',
        'model.backbone.arch.num_heads=(1,1,2,2)',
        'model.backbone.arch.inline_depths=(1,1,1,0)',
        'model.backbone.arch.softmax_window=7',
        'model.backbone.arch.pretrain_img_size=224',
        'model.decode_head.in_channels=[16,32,64,128]',
        'model.decode_head.channels=16',
        'model.auxiliary_head.in_channels=64',
        'model.auxiliary_head.channels=16',
        'model.data_preprocessor.size=(64,64)',
        # Only validation pairs are bundled.
        'train_dataloader.dataset.data_prefix.img_path=images/validation',
        'train_dataloader.dataset.data_prefix.seg_map_path='
        'annotations/validation',
        'train_dataloader.dataset.pipeline.2.scale=(256,64)',
        'train_dataloader.dataset.pipeline.3.crop_size=(64,64)',
        'val_dataloader.dataset.pipeline.1.scale=(256,64)',
        'test_dataloader.dataset.pipeline.1.scale=(256,64)',
        'train_cfg.max_iters=2',
        'train_cfg.val_interval=2',
        'default_hooks.logger.interval=1',
        'default_hooks.checkpoint.save_optimizer=False',
    ],
}
CHECKPOINT = {DET: 'epoch_1.pth', SEG: 'iter_2.pth'}


def lay_out_data(folder: Path) -> None:
    """Puts the bundled images where the configs look, as the README says."""
    (folder / 'data' / 'ade').mkdir(parents=True)
    (folder / 'data' / 'coco').symlink_to(DATA / 'coco')
    (folder / 'data' / 'ade' / 'ADEChallengeData2016').symlink_to(DATA / 'ade')


def shrink(cfg: Config) -> Config:
    """Keeps a config's model, makes its training images and samples small."""
    cfg.model.backbone.init_cfg = None
    # A path dropped for both images gets no gradient in the one step.
    cfg.model.backbone.drop_path_rate = 0.0
    dataset = cfg.train_dataloader.dataset
    if cfg.default_scope == 'mmdet':
        dataset.data_root = str(DATA / 'coco')
        dataset.indices = 2
        if 'roi_head' in cfg.model:
            rcnn = cfg.model.train_cfg.rcnn
            for stage in rcnn if isinstance(rcnn, list) else [rcnn]:
                stage.sampler.num = 16
            cfg.model.train_cfg.rpn_proposal.max_per_img = 16
        elif 'num_queries' in cfg.model:
            cfg.model.num_queries = 16
    else:
        dataset.data_root = str(DATA / 'ade')
        dataset.data_prefix = cfg.val_dataloader.dataset.data_prefix
        cfg.model.data_preprocessor.size = (64, 64)
    _shrink_transforms(dataset.pipeline)
    return cfg


def _shrink_transforms(node) -> None:
    if isinstance(node, (list, tuple)):
        for child in node:
            _shrink_transforms(child)
    elif isinstance(node, dict):
        sizes = dict(
            Resize=dict(scale=(128, 96)),
            RandomChoiceResize=dict(scales=[(96, 128), (64, 128)]),
            RandomResize=dict(scale=(256, 64)),
            RandomCrop=dict(crop_size=(64, 64)),
        )
        node.update(sizes.get(node.get('type'), {}))
        _shrink_transforms(node.get('transforms'))


def build_model(cfg: Config) -> torch.nn.Module:
    """Builds the model through the host that the config names."""
    from mmengine.registry import MODELS

    init_default_scope(cfg.default_scope)
    return MODELS.build(cfg.model)


def seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)

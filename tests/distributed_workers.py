"""What runs in the two processes of tests/engine/test_distributed.py.

A module of its own, because started processes import it by name.
"""

import itertools
import json
import os

import torch
import torch.distributed as dist
from mmengine.model import BaseModel
from small_archs import ARCHS
from tiny import DET, build_model, shrink
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset

CASES = [
    dict(type=name, arch=arch, find_unused=find_unused, **options)
    for (name, arch), find_unused, options in itertools.product(
        ARCHS.items(),
        (False, True),
        (
            {},
            dict(with_cp=True, drop_path_rate=0.3),
            dict(with_cp=True, frozen_stages=1),
            dict(out_indices=(1, 3)),
            dict(out_indices=(2,), with_cp=True, frozen_stages=2),
        ),
    )
]


class BackboneWithNeck(torch.nn.Module):
    """A backbone and the neck that its outputs fit."""

    def __init__(self, find_unused, **backbone):
        super().__init__()
        from mmdet.models.necks import FPN
        from mmengine.registry import MODELS

        from inline_mm.models import InLineDeiT, SimplePyramid

        self.backbone = MODELS.build(backbone)
        channels = self.backbone.num_features
        if not isinstance(self.backbone, InLineDeiT):
            channels = [channels[i] for i in self.backbone.out_indices]
        elif len(channels) == 1:
            self.neck = SimplePyramid(channels[0], 8)
            return
        self.neck = FPN(channels, 8, num_outs=len(channels))

    def forward(self, x):
        return self.neck(self.backbone(x))


def spread_of_weights(module):
    """Largest difference between the two processes' parameters."""
    flat = torch.cat([p.detach().flatten() for p in module.parameters()])
    both = [torch.empty_like(flat) for _ in range(2)]
    dist.all_gather(both, flat)
    return (both[0] - both[1]).abs().max().item()


def train_two_steps(rank, case):
    torch.manual_seed(rank)  # DDP has to make the starts equal itself
    model = BackboneWithNeck(**case)
    wrapped = DistributedDataParallel(
        model, find_unused_parameters=case['find_unused']
    )
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=0.1)
    start = torch.cat([p.detach().flatten().clone() for p in trainable])
    for _ in range(2):
        optimizer.zero_grad()
        outputs = wrapped(torch.randn(1, 3, 64, 96))
        sum((out * out).mean() for out in outputs).backward()
        optimizer.step()
    moved = torch.cat([p.detach().flatten() for p in trainable]) - start
    return dict(
        spread=spread_of_weights(model),
        moved=moved.abs().max().item(),
        without_gradient=[
            key
            for key, p in model.named_parameters()
            if p.requires_grad and p.grad is None
        ],
    )


def train_detector(rank):
    """Steps of Mask R-CNN; the images of rank 1 hold no object."""
    import mmdet.models  # noqa: F401
    from mmdet.testing import demo_mm_inputs
    from mmengine.config import Config
    from mmengine.model import MMDistributedDataParallel

    from inline_mm.engine import use_true_sizes
    from inline_mm.engine.launch import find_config

    cfg = shrink(Config.fromfile(find_config(DET)))
    cfg.model.backbone.arch = ARCHS['InLinePVT']
    cfg.model.neck.in_channels = list(ARCHS['InLinePVT']['embed_dims'])
    torch.manual_seed(0)
    model = MMDistributedDataParallel(build_model(cfg), device_ids=None)
    objects = [3, 3] if rank == 0 else [0, 0]
    sizes = [[3, 64, 96], [3, 50, 70]]
    batch = demo_mm_inputs(2, sizes, num_items=objects, with_mask=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = model.module.data_preprocessor(batch, training=True)
    # Two steps; in the second each image at its own size.
    for _ in range(2):
        losses = model(**data, mode='loss')
        loss, _ = model.module.parse_losses(losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        use_true_sizes(model)
    return dict(loss=loss.item(), spread=spread_of_weights(model.module))


class SumOfSquares(BaseModel):
    """A backbone whose outputs are pulled to zero, for mmengine's runner."""

    def __init__(self, backbone):
        from mmengine.registry import MODELS

        super().__init__()
        self.backbone = MODELS.build(backbone)

    def forward(self, inputs, mode='loss'):
        return dict(loss=sum((out**2).mean() for out in self.backbone(inputs)))


class Images(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return dict(inputs=torch.randn(3, 64, 64, generator=generator))


def train_sharded(rank, folder):
    """Two steps of mmengine's FSDP strategy, without a GPU."""
    from mmengine.runner import FlexibleRunner
    from torch.distributed.fsdp import FullyShardedDataParallel

    torch.manual_seed(0)
    model = SumOfSquares(dict(type='InLineSwin', arch=ARCHS['InLineSwin']))
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    # The device is given, since the strategy would take GPU LOCAL_RANK, which
    # it reads all the same.
    os.environ['LOCAL_RANK'] = str(rank)
    wrapper = dict(use_orig_params=True, device_id=torch.device('cpu'))
    runner = FlexibleRunner(
        model=model,
        work_dir=str(folder / 'work_dir'),
        strategy=dict(type='FSDPStrategy', model_wrapper=wrapper),
        train_dataloader=dict(
            batch_size=2,
            dataset=Images(),
            sampler=dict(type='DefaultSampler', shuffle=False),
            collate_fn=dict(type='default_collate'),
        ),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
    )
    runner.train()
    with FullyShardedDataParallel.summon_full_params(runner.model):
        after = torch.cat([p.flatten() for p in runner.model.parameters()])
        return dict(
            wrapped=isinstance(runner.model, FullyShardedDataParallel),
            moved=(after - before).abs().max().item(),
            spread=spread_of_weights(runner.model),
        )


def worker(rank, folder):
    """Everything in turn, in one pair of processes; leaves its results."""
    torch.set_num_threads(1)
    dist.init_process_group(
        'gloo', init_method=f'file://{folder}/store', rank=rank, world_size=2
    )
    import inline_mm  # noqa: F401

    results = dict(
        backbones=[train_two_steps(rank, case) for case in CASES],
        detector=train_detector(rank),
        sharded=train_sharded(rank, folder),
    )
    (folder / f'{rank}.json').write_text(json.dumps(results))
    dist.destroy_process_group()

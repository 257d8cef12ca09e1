"""The smallest model and run that mmengine's runner takes."""

import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner


class Numbers(torch.utils.data.Dataset):
    """Numbers with noise of the process's own generators, or without."""

    def __init__(self, noise):
        self.noise = noise

    def __len__(self):
        return 5

    def __getitem__(self, index):
        if not self.noise:
            return dict(x=torch.ones(1))
        noise = np.random.rand() + torch.rand(()).item()
        return dict(x=torch.tensor([index + noise]))


class Line(BaseModel):
    """The smallest model with a backbone and dropout."""

    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Linear(1, 8)
        self.backbone.weight.requires_grad_(False)
        self.losses = []

    def forward(self, x, mode='tensor'):
        x = torch.stack(x)
        y = torch.nn.functional.dropout(
            self.backbone(x), training=self.training
        )
        if mode == 'loss':
            self.losses.append(y.mean().item())
            return dict(loss=y.square().mean())
        return [y]


class Nothing(BaseMetric):
    """A metric, for the sake of the loop around it."""

    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        return dict(a=0.0)


def run_line(
    folder, by_epoch, batch_size=2, drop_last=False, num_workers=0, **settings
):
    """Trains `Line` without a fixed seed; 2 epochs or 6 iterations."""

    def loader(sampler, noise):
        return dict(
            dataset=Numbers(noise),
            batch_size=batch_size,
            drop_last=drop_last,
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
            sampler=dict(type=sampler, shuffle=True),
        )

    if by_epoch:
        sampler, interval = 'DefaultSampler', 1
        train_cfg = dict(by_epoch=True, max_epochs=2)
    else:
        sampler, interval = 'InfiniteSampler', 3
        train_cfg = dict(by_epoch=False, max_iters=6, val_interval=3)
    cfg = dict(
        model=Line(),
        work_dir=str(folder),
        train_dataloader=loader(sampler, noise=True),
        train_cfg=train_cfg,
        val_dataloader=loader('DefaultSampler', noise=False),
        val_cfg={},
        val_evaluator=dict(type=Nothing),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        default_hooks=dict(
            checkpoint=dict(
                type='CheckpointHook', interval=interval, by_epoch=by_epoch
            ),
        ),
        custom_hooks=[dict(type='RunRecordHook')],
        # mmengine's default is one dict, which a resumed run changes for all.
        randomness=dict(seed=None),
        experiment_name=f'{folder.parent.name}-{folder.name}',
    )
    # What hooks read there; objects can't be written into a config.
    plain = ('load_from', 'randomness')
    said = {key: settings[key] for key in plain if key in settings}
    runner = Runner(**{**cfg, **settings}, cfg=said)
    runner.train()
    return runner

"""Train and test one model of the demonstration.

A run is a config under ``configs/*/demo`` and goes through mmengine's Runner
as ``tools/train.py`` would send it; this module adds progress in plain words,
drawings and the facts that the report needs.
"""

import contextlib
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

import mmcv
import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.hooks import Hook
from mmengine.runner import Runner

from inline_mm.complexity import count as flops

from .report import read_scalars, seconds_per_iteration

DET = 'configs/mmdet/demo/'
SEG = 'configs/mmseg/demo/'


@dataclass(frozen=True)
class Run:
    """One row of the report.

    Args:
        key (str): Name of its folder.
        title (str): Name for the reader.
        config (str): Path of the config from the project's root.
        data (str): What it is trained, and tested, on.
    """

    key: str
    title: str
    config: str
    data: str


RUNS = (
    Run(
        'inline_pvt',
        'Mask R-CNN, InLine-PVT',
        DET + 'mask-rcnn_inline-pvt-demo_fpn_200it_coco8.py',
        'the 8 bundled COCO images',
    ),
    Run(
        'swin',
        'Mask R-CNN, Swin (baseline)',
        DET + 'mask-rcnn_swin-demo_fpn_200it_coco8.py',
        'the 8 bundled COCO images',
    ),
    Run(
        'inline_pvt_frozen',
        'Mask R-CNN, InLine-PVT frozen (control)',
        DET + 'mask-rcnn_inline-pvt-demo-frozen_fpn_200it_coco8.py',
        'the 8 bundled COCO images',
    ),
    Run(
        'segmentation',
        'Semantic FPN, InLine-PVT',
        SEG + 'fpn_inline-pvt-demo_1xb3-120it_ade3-128x128.py',
        'the 3 bundled ADE20K pairs',
    ),
)

# What the hosts' metrics call the numbers of the table.
METRICS = {
    'coco/bbox_mAP': 'box AP',
    'coco/bbox_mAP_50': 'box AP50',
    'coco/segm_mAP': 'mask AP',
    'mIoU': 'mIoU (%)',
}


class DemoHook(Hook):
    """Report progress now and then; note what training moves; draw tests.

    Args:
        say (callable): Takes a line of text.
        drawings (Path): Folder for the drawn images.
    """

    priority = 'VERY_LOW'

    def __init__(self, say, drawings):
        self.say = say
        self.drawings = drawings

    def before_train(self, runner):
        self.start = time.time()
        # Not earlier: the runner initialises the weights as it starts.
        self.weights = [
            p.detach().clone() for p in runner.model.backbone.parameters()
        ]

    def after_train(self, runner):
        parameters = runner.model.backbone.parameters()
        self.moved = [
            not torch.equal(old, new)
            for old, new in zip(self.weights, parameters, strict=True)
        ]

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        done, total = runner.iter + 1, runner.max_iters
        if done % max(1, total // 10):
            return
        spent = time.time() - self.start
        left = spent / done * (total - done)
        self.say(
            f'  iteration {done:>3}/{total}  loss {outputs["loss"]:6.3f}  '
            f'{spent:4.0f} s, about {left:.0f} s left'
        )

    def after_val_epoch(self, runner, metrics):
        self.say(f'  on the training images: {describe(pick(metrics))}')

    def after_test_iter(self, runner, batch_idx, data_batch, outputs):
        for sample in outputs:
            path = Path(sample.img_path)
            runner.visualizer.add_datasample(
                path.stem,
                mmcv.imread(str(path), channel_order='rgb'),
                data_sample=sample,
                out_file=str(self.drawings / path.name),
            )


def pick(metrics):
    """The table's metrics among a host's, under the table's names."""
    return {
        METRICS[key]: float(value)
        for key, value in metrics.items()
        if key in METRICS
    }


def describe(metrics):
    """Picked metrics in one line."""
    return ', '.join(f'{name} {value:g}' for name, value in metrics.items())


def load_config(path, work_dir, iters=None):
    """Read a demonstration's config.

    Args:
        path (Path): The config file.
        work_dir (Path): Where the runner writes.
        iters (int, optional): Iterations instead of the config's; the schedule
            shrinks with them. Defaults to None.

    Returns:
        Config: Ready for ``Runner.from_cfg``.
    """
    cfg = Config.fromfile(path)
    cfg.work_dir = str(work_dir)
    # Visualizers are global by name: an equal name would write this run's
    # curves into the file of the run before.
    cfg.visualizer.name = str(work_dir)
    if iters is not None:
        full = cfg.train_cfg.max_iters
        warmup, cosine = cfg.param_scheduler
        warmup.end = cosine.begin = max(1, warmup.end * iters // full)
        cosine.end = iters
        interval = max(1, cfg.default_hooks.logger.interval * iters // full)
        cfg.default_hooks.logger.interval = interval
        cfg.log_processor.window_size = interval
        cfg.default_hooks.checkpoint.interval = iters
        val_interval = max(1, cfg.train_cfg.val_interval * iters // full)
        cfg.train_cfg.update(max_iters=iters, val_interval=val_interval)
    return cfg


def measure_complexity(cfg, model, batch):
    """Multiply-adds for one image, heads included.

    Args:
        cfg (Config): The config of the run.
        model (nn.Module): Its detector or segmentor.
        batch (dict): One batch of its test loader.

    Returns:
        dict: ``size`` (H, W) of the padded input, ``macs`` and
        ``backbone_macs`` of an image of that size.
    """
    size = model.data_preprocessor(batch, False)['inputs'].shape[-2:]
    counted = flops.count(cfg, tuple(size))
    return dict(
        size=list(size),
        macs=counted['flops'],
        backbone_macs=counted['parts']['backbone']['flops'],
    )


def describe_arch(backbone):
    """The architecture of a backbone's config in words."""
    arch = backbone.get('arch', backbone)
    dims = arch['embed_dims']
    dims = dims if isinstance(dims, int) else '-'.join(map(str, dims))
    depths = '-'.join(map(str, arch['depths']))
    return f'{backbone["type"]}, dims {dims}, depths {depths}'


def execute(run, root, out, say, iters=None):
    """Train and test one run.

    The host's own output goes to ``console.log`` in the run's folder, beside
    mmengine's logs.

    Args:
        run (Run): What to run.
        root (Path): The project's root.
        out (Path): Folder of the demonstration; the run's is ``out/runs/key``.
        say (callable): Takes a line of progress.
        iters (int, optional): Iterations instead of the config's.

    Returns:
        dict: The facts of the run, fit for JSON; paths relative to ``out``.

    Raises:
        RuntimeError: The run failed.
    """
    work_dir = out / 'runs' / run.key
    work_dir.mkdir(parents=True)
    console_log = work_dir / 'console.log'
    with (
        open(console_log, 'w', encoding='utf-8') as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            cfg = load_config(root / run.config, work_dir, iters)
            drawings = out / 'drawings' / run.key
            facts = train_and_test(cfg, DemoHook(say, drawings))
        except Exception as error:
            traceback.print_exc(file=log)
            raise RuntimeError(
                f'{run.title} failed ({type(error).__name__}: {error}); '
                f'the full log is {console_log}'
            ) from error
    log_dir = work_dir / facts.pop('timestamp')
    scalars = log_dir / 'vis_data/scalars.json'
    return dict(
        asdict(run),
        **facts,
        seconds_per_iteration=seconds_per_iteration(read_scalars(scalars)),
        scalars=scalars.relative_to(out).as_posix(),
        test_log=(log_dir / f'{log_dir.name}.json')
        .relative_to(out)
        .as_posix(),
        drawings=sorted(
            p.relative_to(out).as_posix() for p in drawings.iterdir()
        ),
    )


def train_and_test(cfg, hook):
    """Run a config through mmengine's runner.

    Returns:
        dict: What the runner and its model tell.
    """
    runner = Runner.from_cfg(cfg)
    runner.register_hook(hook)
    runner.train()
    metrics = runner.test()
    batch = next(iter(runner.test_dataloader))
    init_cfg = cfg.model.backbone.get('init_cfg')
    return dict(
        timestamp=runner.timestamp,
        arch=describe_arch(cfg.model.backbone),
        init='random' if init_cfg is None else str(init_cfg),
        seed=cfg.randomness.seed,
        iterations=cfg.train_cfg.max_iters,
        batch_size=cfg.train_dataloader.batch_size,
        device=get_device(),
        threads=torch.get_num_threads(),
        params=count(runner.model),
        backbone_params=count(runner.model.backbone),
        backbone_tensors=len(hook.moved),
        backbone_tensors_moved=sum(hook.moved),
        metrics=pick(metrics),
        **measure_complexity(runner.cfg, runner.model, batch),
    )


def count(model):
    """Number of parameters."""
    return sum(p.numel() for p in model.parameters())

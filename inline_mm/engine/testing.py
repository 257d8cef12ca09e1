"""Options of ``tools/test.py`` that change the config, host by host."""

import os
from copy import deepcopy

from mmengine.config import Config, ConfigDict
from mmengine.hooks import Hook
from torch import Tensor, nn

from ..checkpoint import check_checkpoint
from ..errors import LaunchError


def use_checkpoint(cfg: Config, checkpoint: str) -> None:
    """Takes the weights to test from a checkpoint.

    Args:
        cfg (Config): the config to change.
        checkpoint (str): path or URL.

    Raises:
        LaunchError: if the path is not a file.
        CheckpointError: if it can't be loaded.
    """
    if '://' not in checkpoint and not os.path.isfile(checkpoint):
        folder = os.path.dirname(checkpoint) or '.'
        found = os.listdir(folder) if os.path.isdir(folder) else []
        files = ', '.join(sorted(f for f in found if f.endswith('.pth')))
        raise LaunchError(
            f'checkpoint {checkpoint!r} is not a file'
            + (f'; {folder} holds {files}' if files else '')
        )
    if '://' not in checkpoint:
        check_checkpoint(checkpoint)
    cfg.load_from = checkpoint
    cfg.resume = False


class CompleteWeightsHook(Hook):
    """Stops a test whose checkpoint doesn't fill the whole model.

    mmengine would only warn, and measure random weights.
    """

    def after_load_checkpoint(self, runner, checkpoint: dict) -> None:
        """Compares names and shapes.

        Raises:
            LaunchError: if tensors of the model are missing or differ.
        """
        model = runner.model
        while hasattr(model, 'module'):  # several processes, augmentation
            model = model.module
        check_complete(model, checkpoint)


def check_complete(model: nn.Module, checkpoint: dict) -> dict[str, Tensor]:
    """Makes sure that a checkpoint fills a whole model.

    Args:
        model (nn.Module): the model.
        checkpoint (dict): a file's content.

    Returns:
        dict[str, Tensor]: its tensors, by the model's names.

    Raises:
        LaunchError: if tensors of the model are missing or differ in shape.
    """
    wanted = model.state_dict()
    found = {
        key.removeprefix('module.'): tensor
        for key, tensor in checkpoint.get('state_dict', checkpoint).items()
    }
    missing = [
        key
        for key, tensor in wanted.items()
        if getattr(found.get(key), 'shape', None) != tensor.shape
    ]
    if missing:
        raise LaunchError(
            f'the checkpoint fills {len(wanted) - len(missing)} of the '
            f"model's {len(wanted)} tensors, without {missing[0]!r} for "
            'one; it must come from a run of this config (an official '
            'classifier: tools/convert_checkpoint.py --keep-head)'
        )
    return {key: found[key] for key in wanted}


def dump_predictions(cfg: Config, out: str) -> None:
    """Writes the predictions to a pickle file when the test ends.

    Args:
        cfg (Config): the config to change.
        out (str): the file, ending with '.pkl' or '.pickle'.

    Raises:
        LaunchError: for another ending.
    """
    if not out.endswith(('.pkl', '.pickle')):
        raise LaunchError(f'--out must end with .pkl or .pickle, got {out!r}')
    dump = dict(
        mmdet='DumpDetResults',
        mmseg='DumpSegResults',
        mmpretrain='DumpResults',
    )[cfg.default_scope]
    metrics = cfg.test_evaluator
    metrics = (
        list(metrics) if isinstance(metrics, (list, tuple)) else [metrics]
    )
    cfg.test_evaluator = [*metrics, dict(type=dump, out_file_path=out)]


def draw_predictions(cfg: Config, folder: str) -> None:
    """Draws every prediction into a folder.

    Args:
        cfg (Config): the config to change.
        folder (str): where the images go, created when missing.
    """
    folder = os.path.abspath(folder)
    hook = cfg.default_hooks.get('visualization')
    if hook is None:
        raise LaunchError(
            '--show-dir needs default_hooks.visualization in the config'
        )
    if cfg.default_scope == 'mmdet':
        hook.update(draw=True, test_out_dir=folder)
    elif cfg.default_scope == 'mmpretrain':
        hook.update(enable=True, interval=1, out_dir=folder)
    else:
        # mmseg's hook draws through the visualizer's backend.
        hook.draw = True
        cfg.visualizer.vis_backends = [
            dict(type='LocalVisBackend', img_save_dir=folder)
        ]


def use_tta(cfg: Config) -> None:
    """Tests with the augmentation that the config or its host defines.

    Args:
        cfg (Config): the config to change.

    Raises:
        LaunchError: for what the host can't do: merge masks (mmdet), draw as
            well (mmpretrain), or augment without a definition (mmseg).
    """
    if cfg.default_scope == 'mmdet':
        _refuse_masks(cfg.model)
        cfg.setdefault('tta_model', _DET_TTA_MODEL)
    elif cfg.default_scope == 'mmpretrain':
        if cfg.default_hooks.get('visualization', {}).get('enable'):
            raise LaunchError(
                "--tta and --show-dir don't go together for classifiers: "
                "mmpretrain's hook draws one view of an image"
            )
        cfg.setdefault('tta_model', dict(type='mmpretrain.AverageClsScoreTTA'))
    elif not cfg.get('tta_model') or not cfg.get('tta_pipeline'):
        # What must not be flipped with the image is the config's to know.
        raise LaunchError(
            '--tta needs tta_model and tta_pipeline in an mmseg config'
        )
    dataset = cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    if 'tta_pipeline' not in cfg:
        cfg.tta_pipeline = _add_flip(dataset.pipeline)
    cfg.model = ConfigDict(**cfg.tta_model, module=cfg.model)
    dataset.pipeline = cfg.tta_pipeline


_DET_TTA_MODEL = dict(
    type='DetTTAModel',
    tta_cfg=dict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=100),
)


def _refuse_masks(model: ConfigDict) -> None:
    if model.get('roi_head', model).get('mask_head') is not None:
        raise LaunchError(
            '--tta merges boxes only and this model predicts masks; its boxes '
            'alone can be tested so: --tta --cfg-options '
            'model.roi_head.mask_head=None '
            'model.roi_head.mask_roi_extractor=None test_evaluator.metric=bbox'
        )


def _add_flip(pipeline: list) -> list:
    """The test pipeline on the image and on its mirror image."""
    *before, pack = deepcopy(pipeline)
    if 'meta_keys' in pack:  # mmdet's default has what merging needs
        pack.meta_keys = (*pack.meta_keys, 'flip', 'flip_direction')
    flips = [dict(type='RandomFlip', prob=p) for p in (1.0, 0.0)]
    return [*before, dict(type='TestTimeAug', transforms=[flips, [pack]])]

"""The check of a whole config, on one of several processes."""

from mmengine.config import Config
from mmengine.dist import broadcast_object_list, get_rank, is_distributed
from mmengine.logging import print_log

from .coco import check_coco, is_coco
from .config import (
    build_dataset,
    check_classes,
    check_heads,
    data_loaders,
    name_of,
    smallest_side,
)
from .images import SAMPLE, is_local
from .masks import check_seg, is_seg
from .report import DataError, Findings, Report

# Configs that were checked in this process: a hook need not do it again.
_done: set[str] = set()


def check_data(
    cfg: Config, mode: str = 'all', number: int | None = SAMPLE
) -> Report:
    """Checks the data that a config describes, and what it says of them.

    Nothing is built but data sets, and those without reading. Annotation
    files are read whole; of images and masks a sample is decoded.

    Args:
        cfg (Config): the whole config.
        mode (str): 'train' for the training and validation data, 'val',
            'test', or 'all' for all three. Defaults to 'all'.
        number (int | None): how many images of a data set are decoded, evenly
            spaced, for 30 seconds at most; None for all, however long that
            takes. Defaults to 512.

    Returns:
        Report: what was found.
    """
    report = Report()
    scope = cfg.get('default_scope', 'mmengine')
    for split, dataset_cfg, metrics in data_loaders(cfg, mode):
        model = cfg.get('model')
        model = model if isinstance(model, dict) else {}
        found = Findings(report, split, smallest_side(model, split))
        metrics = [] if split == 'train' else metrics
        dataset = build_dataset(dataset_cfg, scope, found)
        if dataset is None:
            continue
        check = _find_check(dataset, dataset_cfg, found)
        if check is None:
            continue
        classes = check_classes(dataset, dataset_cfg, found)
        if classes is None:
            continue
        check_heads(model, classes, found)
        check(dataset, dataset_cfg, metrics, classes, found, number)
    return report


def _find_check(dataset, cfg: dict, found: Findings):
    """The function for a kind of data set; None, and a remark, if none is."""
    known = is_coco(dataset), is_seg(dataset)
    if any(known) and is_local(dataset):
        return check_coco if known[0] else check_seg
    if any(known):
        found.odd(
            'the data are not plain files of this machine; they were not '
            'checked'
        )
    else:
        found.odd(f'data sets of type {name_of(cfg)} can not be checked here')
    return None


def check_before_run(cfg: Config, mode: str) -> None:
    """Checks the data before a run, on the first process; the others wait.

    Args:
        cfg (Config): the whole config.
        mode (str): 'train' (with validation), 'val' or 'test'.

    Raises:
        DataError: on the first process, if there are faults.
        SystemExit: on the others, then.
    """
    key = f'{mode} {cfg.get("model")} ' + ' '.join(
        f'{cfg.get(f"{split}_dataloader")} {cfg.get(f"{split}_evaluator")}'
        for split in ('train', 'val', 'test')
    )
    if key in _done:
        return
    outcome = [False]
    try:
        if get_rank() == 0:
            report = check_data(cfg, mode)
            report.log()
            if report.files_seen:
                print_log(
                    f'data check: opened {report.files_read} of '
                    f'{report.files_seen} images and masks, '
                    f'{len(report.faults)} faults, {len(report.oddities)} '
                    'oddities',
                    logger='current',
                )
            if report.faults:
                raise DataError(report.sentence())
        outcome = [True]
    finally:
        if is_distributed():
            broadcast_object_list(outcome)
    if not outcome[0]:
        raise SystemExit(1)
    _done.add(key)

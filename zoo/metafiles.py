"""Meta files of the shipped configs, and the tables of READMEs made of them.

A meta file lists the configs of its folder: what they train, on what, how
large the model is. Everything is read off the configs and counted, but for
`Results` and `Weights`, which whoever measured or trained something writes
into the meta file by hand: they are kept. Each result says where its weights
are from (`Source`: one of `SOURCES`).
"""

import re
from collections.abc import Callable
from pathlib import Path

from mmengine.config import Config
from mmengine.fileio import dump, load

HOSTS = ('mmdet', 'mmseg', 'mmpretrain')
FOLDERS = ('inline_pvt', 'inline_swin', 'inline_cswin', 'inline_deit')
SOURCES = ('published weights', 'trained here')
DATA = dict(mmdet='COCO', mmseg='ADE20K', mmpretrain='ImageNet-1K')
METHODS = {
    'mask-rcnn': 'Mask R-CNN',
    'cascade-mask-rcnn': 'Cascade Mask R-CNN',
    'faster-rcnn': 'Faster R-CNN',
    'retinanet': 'RetinaNet',
    'dino-4scale': 'DINO',
    'fpn': 'Semantic FPN',
    'upernet': 'UPerNet',
}
FAMILIES = dict(pvt='PVT', swin='Swin', cswin='CSwin', deit='DeiT')
PAPERS = {
    'InLine': (
        'Bridging the Divide: Reconsidering Softmax and Linear Attention',
        'https://arxiv.org/abs/2412.06590',
    ),
    'PVT': (
        'Pyramid Vision Transformer: A Versatile Backbone for Dense '
        'Prediction without Convolutions',
        'https://arxiv.org/abs/2102.12122',
    ),
    'Swin': (
        'Swin Transformer: Hierarchical Vision Transformer using Shifted '
        'Windows',
        'https://arxiv.org/abs/2103.14030',
    ),
    'CSwin': (
        'CSWin Transformer: A General Vision Transformer Backbone with '
        'Cross-Shaped Windows',
        'https://arxiv.org/abs/2107.00652',
    ),
    'DeiT': (
        'Training data-efficient image transformers & distillation through '
        'attention',
        'https://arxiv.org/abs/2012.12877',
    ),
}
_KEPT = ('Results', 'Weights')


def folders(root: Path) -> list[Path]:
    """Folders of configs that have a meta file.

    Args:
        root (Path): folder with `configs`.

    Returns:
        list[Path]: by host, the four families and the baselines.
    """
    found = [
        root / 'configs' / host / folder
        for host in HOSTS
        for folder in (*FOLDERS, 'baselines')
    ]
    return [folder for folder in found if folder.is_dir()]


def read(root: Path) -> dict[str, dict]:
    """What the meta files say.

    Args:
        root (Path): folder with `configs`.

    Returns:
        dict[str, dict]: the entry of each config, by name.
    """
    return {
        model['Name']: model
        for folder in folders(root)
        if (folder / 'metafile.yml').is_file()
        for model in load(folder / 'metafile.yml')['Models']
    }


def write(root: Path, count: Callable[[Config], dict], recount: bool) -> None:
    """Writes every meta file and the index of them.

    Args:
        root (Path): folder with `configs`.
        count (Callable[[Config], dict]): gives 'params', 'flops' and
            'input_shape' of a config, as :func:`~.flops.count` does.
        recount (bool): count again what meta files have counts of.
    """
    known = read(root)
    paths = []
    for folder in folders(root):
        models = [
            describe(root, path, known.get(path.stem, {}), count, recount)
            for path in sorted(folder.glob('*.py'))
        ]
        content = dict(Collections=_collections(folder, models), Models=models)
        path = folder / 'metafile.yml'
        path.write_text(_yaml(content), encoding='utf-8')
        paths.append(path.relative_to(root).as_posix())
    index = _yaml(dict(Import=paths))
    (root / 'model-index.yml').write_text(index, encoding='utf-8')


def _yaml(content: dict) -> str:
    return dump(
        content, file_format='yml', sort_keys=False, allow_unicode=True
    )


def describe(
    root: Path,
    path: Path,
    known: dict,
    count: Callable[[Config], dict],
    recount: bool = False,
) -> dict:
    """The entry of one config.

    Args:
        root (Path): folder with `configs`.
        path (Path): the config.
        known (dict): its entry so far, {} if there is none.
        count (Callable[[Config], dict]): see :func:`write`.
        recount (bool): count even if `known` has counts. Defaults to False.

    Returns:
        dict: for the meta file.
    """
    cfg = Config.fromfile(path)
    host, method, family, size = parse_name(path)
    metadata = {'Training Data': DATA[host]}
    if 'max_epochs' in cfg.train_cfg:
        metadata['Epochs'] = cfg.train_cfg.max_epochs
    else:
        metadata['Iterations'] = cfg.train_cfg.max_iters
    metadata['Batch Size'] = cfg.auto_scale_lr.base_batch_size
    metadata['Training Techniques'] = [cfg.optim_wrapper.optimizer.type]
    metadata['Architecture'] = [
        word for word in (method, f'{family}-{size}') if word
    ]
    counts = ('Parameters', 'FLOPs', 'FLOPs Input')
    before = known.get('Metadata', {})
    if recount or not set(counts) <= set(before):
        counted = count(cfg)
        height, width = counted['input_shape']
        size = f'{height}x{width}'
        before = dict(
            zip(
                counts,
                (counted['params'], counted['flops'], size),
                strict=True,
            )
        )
    metadata |= {key: before[key] for key in counts}
    return {
        'Name': path.stem,
        'In Collection': family,
        'Config': path.relative_to(root).as_posix(),
        'Metadata': metadata,
    } | {key: known[key] for key in _KEPT if key in known}


def parse_name(path: Path) -> tuple[str, str, str, str]:
    """What a config's name says.

    Args:
        path (Path): the config.

    Returns:
        tuple[str, str, str, str]: host, method ('' for a classifier), family
        such as 'InLine-PVT', and size such as 'T'.
    """
    host, name = path.parents[1].name, path.stem
    ours, family, size = re.search(
        r'(inline-)?(pvt|swin|cswin|deit)-([a-z])', name
    ).groups()
    family = ('InLine-' if ours else '') + FAMILIES[family]
    method = '' if host == 'mmpretrain' else METHODS[name.split('_')[0]]
    return host, method, family, size.upper()


def _collections(folder: Path, models: list[dict]) -> list[dict]:
    host = folder.parent.name
    collections = []
    for family in dict.fromkeys(model['In Collection'] for model in models):
        title, url = PAPERS[family.partition('-')[0]]
        collections.append(
            {
                'Name': family,
                'Metadata': {
                    'Training Data': DATA[host],
                    'Architecture': [family],
                },
                'Paper': {'Title': title, 'URL': url},
                'README': f'configs/{host}/README.md',
            }
        )
    return collections

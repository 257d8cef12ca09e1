"""What the record of a test says of data, schedule, images and model."""

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from mmengine.config import Config
from mmengine.logging import print_log

from ..checkpoint.reading import hash_file
from ..models.variants import PVT, SWIN

# What changes a backbone of ours without changing the name of its size.
SWITCHES = (
    'window_size',
    'kernel',
    'normalization',
    'local_residual',
    'attention',
    'inline_depths',
)
# Where a run writes, how it was started, from what weights and seed.
NOT_THE_RECIPE = (
    'work_dir',
    'launcher',
    'model_wrapper_cfg',
    'randomness',
    'load_from',
    'resume',
)
METHODS = dict(
    CascadeRCNN='Cascade R-CNN',
    FPNHead='Semantic FPN',
    ImageClassifier='classifier',
    MaskRCNN='Mask R-CNN',
    UPerHead='UPerNet',
)


def describe_data(dataset) -> list[dict]:
    """What a data set holds.

    Args:
        dataset (Dataset): a data set of mmengine that was built, or a
            wrapper of some.

    Returns:
        list[dict]: for each wrapped data set its 'name', the number of
        'images' and 'classes' (None if it doesn't say), and 'sha256': of the
        COCO file, or of the sorted names of images with their label map or
        class. None where there is neither.
    """
    if hasattr(dataset, 'datasets'):
        return [d for child in dataset.datasets for d in describe_data(child)]
    if hasattr(dataset, 'dataset'):
        return describe_data(dataset.dataset)
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    return [
        dict(
            name=type(dataset).__name__,
            images=len(dataset),
            classes=None if classes is None else len(classes),
            sha256=_hash_annotations(dataset),
        )
    ]


def _hash_annotations(dataset) -> str | None:
    path = getattr(dataset, 'ann_file', None) or ''
    if hasattr(dataset, 'COCOAPI') and os.path.isfile(path):
        return hash_file(Path(path))
    if not hasattr(dataset, 'get_data_info'):
        return None
    pairs = [_pair(dataset.get_data_info(i)) for i in range(len(dataset))]
    if None in pairs:
        return None
    return sha256('\n'.join(sorted(pairs)).encode()).hexdigest()


def _pair(info: dict) -> str | None:
    """An image and its label, without the folders of this machine."""
    if 'img_path' not in info:
        return None
    label = info.get('seg_map_path', info.get('gt_label'))
    if isinstance(label, str):
        label = os.path.basename(label)
    return f'{os.path.basename(info["img_path"])}\t{label}'


def hash_config(cfg: Config) -> str:
    """Hash of a recipe.

    Args:
        cfg (Config): the config.

    Returns:
        str: sha256 of the dumped text. What a run writes where, how it was
        started, its seed and the weights it loads don't count.
    """
    recipe = cfg.copy()
    for key in NOT_THE_RECIPE:
        recipe.pop(key, None)
    return sha256(recipe.pretty_text.encode()).hexdigest()


def describe_training(meta: dict, cfg: Config) -> dict:
    """How tested weights were trained, as far as their file says.

    Args:
        meta (dict): the checkpoint's 'meta'; empty if it has none.
        cfg (Config): the config of the test, for a training config that
            can't be read.

    Returns:
        dict: 'source' of what follows ('checkpoint', 'config of the test',
        or None: nothing is known); 'config_sha256'; 'epochs' or 'iterations'
        that were planned, 'done_epochs' and 'done_iterations'; 'batch' (dict
        of the images of a step); 'seed'; 'data' as of
        :func:`describe_data`.
    """
    source, recipe = None, None
    if meta.get('cfg'):
        source = 'checkpoint'
        try:
            # The file was unpickled by mmengine: its text is trusted, too.
            recipe = Config.fromstring(meta['cfg'], '.py')
        except Exception as error:  # whatever a text may raise
            source, recipe = 'config of the test', cfg
            print_log(
                "the checkpoint's config can not be read, the record has the "
                f"schedule of the test's: {error}",
                logger='current',
            )
    plan = (recipe.get('train_cfg') or {}) if recipe else {}
    return dict(
        source=source,
        config_sha256=hash_config(recipe) if recipe else None,
        epochs=plan.get('max_epochs'),
        iterations=plan.get('max_iters'),
        done_epochs=meta.get('epoch'),
        done_iterations=meta.get('iter'),
        batch=meta.get('batch'),
        seed=meta.get('seed'),
        data=meta.get('train_data'),
    )


def describe_scale(pipeline: Iterable[dict]) -> list[str]:
    """The sizes that a test pipeline brings images to, in words.

    Args:
        pipeline (Iterable[dict]): configs of the transforms.

    Returns:
        list[str]: such as '1333x800 with its ratio kept'; several ones of an
        augmented test.
    """
    return [words for step in pipeline for words in _scale_words(step)]


def _scale_words(step: dict) -> Iterator[str]:
    name = step['type'].rpartition('.')[2]
    if name == 'TestTimeAug':
        for group in step['transforms']:
            yield from describe_scale(group)
    elif name == 'CenterCrop':
        yield f'centre crop {_size(step["crop_size"])}'
    elif name == 'ResizeEdge':
        yield f'{step.get("edge", "short")} edge {step["scale"]}'
    elif 'Resize' in name and step.get('scale') is not None:
        kept = ' with its ratio kept' if step.get('keep_ratio') else ''
        yield f'{_size(step["scale"])}{kept}'
    elif 'Resize' in name or name == 'Pad':
        settings = (f'{k}={v}' for k, v in step.items() if k != 'type')
        yield ' '.join([name, *settings])


def _size(size: int | tuple[int, int]) -> str:
    return str(size) if isinstance(size, int) else 'x'.join(map(str, size))


def describe_model(model: dict) -> dict[str, str | None]:
    """Names of a model, as published tables have them.

    Args:
        model (dict): its config.

    Returns:
        dict: 'method', such as 'Mask R-CNN', and 'backbone', such as
        'InLine-Swin-T'; the types in the config where no name is known.
    """
    kind = model['type'].rpartition('.')[2]
    if kind == 'EncoderDecoder':
        head = model.get('decode_head')
        head = head[-1] if isinstance(head, (list, tuple)) else head
        kind = head['type'].rpartition('.')[2]
    method = METHODS.get(kind, kind)
    if kind == 'CascadeRCNN' and model.get('roi_head', {}).get('mask_head'):
        method = 'Cascade Mask R-CNN'
    return dict(method=method, backbone=_name_backbone(model.get('backbone')))


def _name_backbone(backbone: dict | None) -> str | None:
    if not backbone:
        return None
    kind = backbone['type'].rpartition('.')[2]
    size = None
    if kind.startswith('InLine'):
        size = backbone.get('arch')
        family = f'InLine-{kind.removeprefix("InLine")}'
        if any(key in backbone for key in SWITCHES):
            return f'{kind} (changed)'
    elif kind == 'SwinTransformer':
        family, size = (
            'Swin',
            backbone.get('arch')
            or _find(
                SWIN,
                embed_dims=backbone.get('embed_dims', 96),
                depths=tuple(backbone.get('depths', (2, 2, 6, 2))),
            ),
        )
    elif kind == 'PyramidVisionTransformer':
        family = 'PVT'
        size = _find(
            PVT, depths=tuple(backbone.get('num_layers', (3, 4, 6, 3)))
        )
    return f'{family}-{size[0].upper()}' if isinstance(size, str) else kind


def _find(table: dict, embed_dims=None, depths=None) -> str | None:
    """Name of the row of a table of variants with these settings."""
    for name, row in table.items():
        same_width = embed_dims in (None, row['embed_dims'])
        if same_width and row['depths'] == depths:
            return name
    return None

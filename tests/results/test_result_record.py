"""What the record of a test says, and that it never costs the metrics."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from torch import nn

from inline_mm.compare import published
from inline_mm.engine import facts
from inline_mm.engine.launch import read_config
from inline_mm.errors import LaunchError
from inline_mm.results import record
from inline_mm.results.observing import WARM_UP, ResultHook


def watch(metrics=(), model=None):
    """A hook before a test, with stand-ins for the rest of the runner."""
    hook = ResultHook()
    evaluator = SimpleNamespace(metrics=list(metrics))
    hook.before_test(
        SimpleNamespace(
            test_loop=SimpleNamespace(evaluator=evaluator),
            model=model or nn.Linear(1, 1),
        )
    )
    return hook


CATEGORIES = [dict(id=7, name='cat'), dict(id=3, name='dog')]
BOX = [10.0, 10.0, 40.0, 40.0]


def coco_metric(**settings):
    """mmdet's metric and its results: the cat is found, the dog is not."""
    from mmdet.evaluation import CocoMetric

    metric = CocoMetric(metric=['bbox', 'segm'], **settings)
    metric.dataset_meta = dict(classes=('cat', 'dog', 'unicorn'))
    mask = torch.zeros(1, 64, 64, dtype=torch.bool)
    mask[0, 10:40, 10:40] = True
    half = mask.clone()
    half[0, 10:40, 30:40] = False  # an IoU of two thirds with the whole
    instances = [
        dict(bbox=BOX, bbox_label=label, mask=_polygon(), ignore_flag=0)
        for label in (0, 1)
    ]
    metric.process(
        {},
        [
            dict(
                img_id=0,
                ori_shape=(64, 64),
                instances=instances,
                pred_instances=dict(
                    bboxes=torch.tensor([BOX]),
                    scores=torch.ones(1),
                    labels=torch.zeros(1, dtype=torch.long),
                    masks=half,
                ),
            )
        ],
    )
    return metric


def _polygon():
    return [[10.0, 10.0, 40.0, 10.0, 40.0, 40.0, 10.0, 40.0]]


def test_boxes_and_masks_have_their_own_values_by_class():
    MMLogger.get_instance('records')
    plain = coco_metric().evaluate(1)
    metric = coco_metric()
    hook = watch([metric])
    assert metric.evaluate(1) == plain
    assert hook.per_class['box_ap']['cat'] == pytest.approx(100)
    assert hook.per_class['box_ap']['dog'] == 0
    assert np.isnan(hook.per_class['box_ap']['unicorn'])
    # Right at the thresholds 0.5 to 0.65 of ten.
    assert hook.per_class['mask_ap']['cat'] == pytest.approx(40, abs=0.1)
    assert record.clean(hook.per_class)['mask_ap']['unicorn'] is None


def test_classwise_of_the_config_is_kept():
    MMLogger.get_instance('records')
    metric = coco_metric(classwise=True)
    watch([metric])
    found = metric.evaluate(1)
    assert found['coco/cat_precision'] == pytest.approx(0.4, abs=0.001)
    assert metric.classwise and metric.metrics == ['bbox', 'segm']


class CocoMetric:
    """One whose values by class can't be computed."""

    metrics, classwise = ('bbox',), False

    def compute_metrics(self, results):
        if self.classwise:
            raise KeyError('no such class')
        return dict(bbox_mAP=0.5)


def test_values_by_class_do_not_cost_the_metrics():
    metric = CocoMetric()
    hook = watch([metric])
    assert metric.compute_metrics([]) == dict(bbox_mAP=0.5)
    assert hook.per_class == {}


def test_segmentation_has_values_by_class():
    from mmseg.evaluation import IoUMetric

    def evaluate(watched):
        metric = IoUMetric(iou_metrics=['mIoU'])
        metric.dataset_meta = dict(classes=('wall', 'sky', 'boat'))
        hook = watch([metric] if watched else [])
        sample = dict(
            pred_sem_seg=dict(data=torch.tensor([[0, 0, 0, 1]])),
            gt_sem_seg=dict(data=torch.tensor([[0, 0, 1, 1]])),
        )
        metric.process({}, [sample])
        return metric.evaluate(1), hook.per_class

    MMLogger.get_instance('records')
    found, by_class = evaluate(True)
    assert found == evaluate(False)[0]
    assert by_class['iou']['wall'] == pytest.approx(200 / 3)
    assert by_class['iou']['sky'] == pytest.approx(50)
    assert np.isnan(by_class['iou']['boat'])
    assert by_class['acc']['wall'] == pytest.approx(100)
    assert found['mIoU'] == pytest.approx((200 / 3 + 50) / 2, abs=0.01)


class Slow(nn.Module):
    """A model whose clock is the test's."""

    def __init__(self, clock):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.clock = clock

    def forward(self, inputs, mode):
        self.clock.now += self.clock.step


def test_latency_is_that_of_the_forward_without_warming_up(monkeypatch):
    clock = SimpleNamespace(now=0.0, step=9.0)
    monkeypatch.setattr(
        'inline_mm.results.observing.perf_counter', lambda: clock.now
    )
    model = Slow(clock)
    hook = watch(model=model)
    for size in (64, *[32] * (WARM_UP - 1)):
        model(inputs=torch.zeros(1, 3, size, 48), mode='predict')
    clock.step = 0.5
    for _ in range(4):
        clock.now += 100.0  # between two images: not the model's
        model(inputs=torch.zeros(2, 3, 32, 48), mode='predict')
    hook.after_test(None)
    model(inputs=torch.zeros(1, 3, 8, 8), mode='predict')
    found = hook.latency()
    assert found['device'].startswith('cpu, ')
    assert (found['ms'], found['images']) == (250.0, 8)
    assert found['input_shape'] == [32, 48]


def test_few_images_and_none_and_augmented_ones():
    model = Slow(SimpleNamespace(now=0.0, step=0.0))
    hook = watch(model=model)
    assert hook.latency() is None
    for _ in range(3):
        model(inputs=torch.zeros(1, 3, 8, 8), mode='predict')
    assert hook.latency()['images'] == 2

    class SomeTTAModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = model

    hook = watch(model=SomeTTAModel())
    model(inputs=torch.zeros(1, 3, 8, 8), mode='predict')
    assert hook.latency() is None


@pytest.mark.parametrize(
    ('step', 'words'),
    [
        (
            dict(type='Resize', scale=(1333, 800), keep_ratio=True),
            ['1333x800 with its ratio kept'],
        ),
        (dict(type='mmdet.Resize', scale=(96, 64)), ['96x64']),
        (dict(type='ResizeEdge', scale=256, edge='short'), ['short edge 256']),
        (dict(type='CenterCrop', crop_size=224), ['centre crop 224']),
        (
            dict(type='ResizeToMultiple', size_divisor=32),
            ['ResizeToMultiple size_divisor=32'],
        ),
        (dict(type='LoadAnnotations'), []),
        (
            dict(
                type='TestTimeAug',
                transforms=[
                    [dict(type='Resize', scale=s) for s in (64, 96)],
                    [dict(type='RandomFlip', prob=1.0)],
                ],
            ),
            ['64', '96'],
        ),
    ],
)
def test_test_scale_in_words(step, words):
    assert (
        facts.describe_scale([dict(type='LoadImageFromFile'), step]) == words
    )


@pytest.mark.parametrize(
    'name',
    [
        'cascade-mask-rcnn_swin-b_fpn_4conv1fc-giou-ms-crop-3x_coco',
        'fpn_pvt-m_8xb4-40k_ade20k-512x512',
        'inline-cswin-base_8xb64_in1k-384',
        'inline-deit-small_8xb128_in1k-288',
        'mask-rcnn_inline-pvt-l_fpn_1x_coco',
        'retinanet_pvt-s_fpn_1x_coco',
        'upernet_inline-swin-t_8xb2-160k_ade20k-512x512',
        'upernet_swin-s_8xb2-160k_ade20k-512x512',
    ],
)
def test_models_have_the_names_of_published_rows(name):
    row = published.for_config(name)
    found = facts.describe_model(read_config(name).model)
    assert found == dict(method=row['method'], backbone=row['backbone'])


def test_other_models_have_the_names_of_their_types():
    for switch in (dict(kernel='relu'), dict(attention='focused')):
        backbone = dict(type='InLineSwin', arch='tiny', **switch)
        model = dict(type='mmdet.ATSS', backbone=backbone)
        wanted = dict(method='ATSS', backbone='InLineSwin (changed)')
        assert facts.describe_model(model) == wanted
    backbone = dict(type='SwinTransformer', embed_dims=24)
    model = dict(type='CascadeRCNN', roi_head={}, backbone=backbone)
    wanted = dict(method='Cascade R-CNN', backbone='SwinTransformer')
    assert facts.describe_model(model) == wanted


def test_hash_is_that_of_the_recipe():
    cfg = Config(dict(lr=1, work_dir='a', randomness=dict(seed=0)))
    same = Config(dict(lr=1, launcher='none', load_from='b', resume=True))
    same.model_wrapper_cfg = dict(type='A')
    other = Config(dict(lr=2))
    assert facts.hash_config(cfg) == facts.hash_config(same)
    assert facts.hash_config(cfg) != facts.hash_config(other)
    assert cfg.work_dir == 'a'


class Pairs:
    """A data set of images and label maps in some folder."""

    def __init__(self, folder, names, labels=None):
        self.metainfo = dict(classes=('a', 'b'))
        self.rows = [
            dict(img_path=f'{folder}/i/{name}.jpg')
            | (
                dict(seg_map_path=f'{folder}/m/{name}.png')
                if labels is None
                else dict(gt_label=labels[i])
            )
            for i, name in enumerate(names)
        ]

    def __len__(self):
        return len(self.rows)

    def get_data_info(self, index):
        return self.rows[index]


def test_data_are_known_by_their_pairs_not_their_folder(tmp_path):
    (first,) = facts.describe_data(Pairs('/a', 'xy'))
    assert (first['name'], first['images'], first['classes']) == (
        'Pairs',
        2,
        2,
    )
    assert facts.describe_data(Pairs('/b', 'yx'))[0] == first
    hashes = {
        facts.describe_data(Pairs('/a', *content))[0]['sha256']
        for content in (['xy'], ['xz'], ['xy', [0, 1]], ['xy', [1, 0]])
    }
    assert len(hashes) == 4 and None not in hashes
    several = SimpleNamespace(
        dataset=SimpleNamespace(datasets=[Pairs('/a', 'xy'), [1, 2, 3]])
    )
    assert facts.describe_data(several) == [
        first,
        dict(name='list', images=3, classes=None, sha256=None),
    ]


def test_training_is_that_of_the_checkpoint():
    cfg = Config(dict(train_cfg=dict(by_epoch=True, max_epochs=99)))
    recipe = Config(dict(train_cfg=dict(by_epoch=True, max_epochs=12)))
    meta = dict(
        cfg=recipe.pretty_text,
        epoch=6,
        iter=60,
        seed=3,
        batch=dict(images=16),
        train_data=[dict(images=5)],
    )
    found = facts.describe_training(meta, cfg)
    assert found == dict(
        source='checkpoint',
        config_sha256=facts.hash_config(recipe),
        epochs=12,
        iterations=None,
        done_epochs=6,
        done_iterations=60,
        batch=dict(images=16),
        seed=3,
        data=[dict(images=5)],
    )
    broken = facts.describe_training(dict(cfg='model = ('), cfg)
    assert (broken['source'], broken['epochs']) == ('config of the test', 99)
    nothing = facts.describe_training({}, cfg)
    assert set(nothing.values()) == {None}


class NoDataset:
    """A data set that breaks."""

    def __len__(self):
        raise RuntimeError('the disk is gone')


def test_what_can_not_be_found_is_null_and_logged(caplog):
    logger = MMLogger.get_instance('gone')
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO):
        found = record._try('data', facts.describe_data, NoDataset())
    logger.removeHandler(caplog.handler)
    assert found is None
    assert 'without its data' in caplog.text
    assert 'the disk is gone' in caplog.text


def test_scores_have_one_name_in_all_hosts():
    metrics = {
        'coco/bbox_mAP': 0.414,
        'coco/bbox_mAP_l': None,
        'coco/segm_mAP_50': 0.25,
        'mIoU': 44.51,
        'aAcc': 80.0,
        'accuracy/top1': 82.4,
        'other/metric': 1.0,
    }
    assert record._scores(metrics) == dict(
        box_ap=41.4,
        box_ap_l=None,
        mask_ap50=25.0,
        miou=44.51,
        aacc=80.0,
        top1=82.4,
    )


def test_a_record_that_can_not_be_written_says_where_the_metrics_are(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(record, 'describe_test', lambda *_: dict(a=1))
    path = tmp_path / 'gone' / 'a.json'
    with pytest.raises(LaunchError, match='the metrics are in the log'):
        record.save(path, None, {}, None, 'a.pth', False)

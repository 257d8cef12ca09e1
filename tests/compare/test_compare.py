"""Comparison of records: what is flagged, averaged, drawn and written."""

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
from forked import run_script
from PIL import Image
from result_records import make_record, make_segmentation
from rich.console import Console
from tiny import TOOLS

from inline_mm.compare import compare, published, read_record
from inline_mm.compare.curves import read_curves
from inline_mm.compare.rows import Value
from inline_mm.errors import LaunchError


def remarks_of(comparison):
    (section,) = comparison.sections
    return section.remarks()


OTHER_DATA = [dict(name='CocoDataset', images=7, classes=80, sha256='e' * 64)]


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (
            {'training.epochs': 36, 'training.done_epochs': 36},
            'schedule (36 epochs, not 12 epochs)',
        ),
        (
            {'training.done_epochs': 6},
            'schedule (6 of 12 epochs, not 12 epochs)',
        ),
        (
            {
                'training.epochs': None,
                'training.iterations': 1,
                'training.done_iterations': 1,
            },
            'schedule (1 iteration, not 12 epochs)',
        ),
        (
            {'training.batch': dict(images=2)},
            'batch (2 images per step, not 16 images per step)',
        ),
        (
            {'training.batch': None},
            'batch (unknown; of row 1 16 images per step)',
        ),
        (
            {'initialisation': dict(text='random')},
            'initialisation (random, not weights of one.pth)',
        ),
        (
            {'initialisation.matched': 8},
            'initialisation (weights of one.pth, in part, not weights of',
        ),
        (
            {
                'initialisation.sha256': '2' * 64,
                'initialisation.source': 'two.pth',
            },
            'initialisation (weights of two.pth, not weights of one.pth)',
        ),
        (
            {'training.data': OTHER_DATA},
            'training data (7 images of CocoDataset (eeeeeeee), not 117266',
        ),
        (
            {'test_data': OTHER_DATA},
            'test data (7 images of CocoDataset (eeeeeeee), not 5000',
        ),
        (
            {'test_scale': ['640x640']},
            'test scale (640x640, not 1333x800 with its ratio kept)',
        ),
        ({'batch_size': 8}, 'test batch (8 image(s), not 1 image(s))'),
        ({'tta': True}, 'augmentation (with augmentation in the test, not'),
        ({'model.method': 'RetinaNet'}, 'method (RetinaNet, not Mask R-CNN)'),
        ({'model.input_shape': [64, 96]}, 'FLOPs (at 64x96, not at 800x1280)'),
        ({'latency.device': 'a CPU'}, 'latency (on a CPU, 800x1216 pixels,'),
    ],
)
def test_every_difference_is_said(changes, words):
    other = make_record({'config.name': 'other', **changes})
    remarks = remarks_of(compare([make_record(), other]))
    assert len(remarks) == 1
    assert remarks[0].startswith(f'Row 2: unlike row 1 in {words}')


def test_equal_circumstances_are_not_remarked_on():
    other = make_record(
        {
            'config.name': 'other',
            'config.sha256': 'c9',
            'model.backbone': 'InLine-Swin-T',
            # Another backbone has other weights; both are pretrained.
            'initialisation.sha256': '2' * 64,
            'scores.box_ap': 41.0,
        }
    )
    assert remarks_of(compare([make_record(), other])) == []


def test_unknown_circumstances_are_said_of_all_rows():
    unknown = {'training.batch': None, 'initialisation': None}
    rows = [make_record({**unknown, 'config.name': name}) for name in 'ab']
    assert remarks_of(compare(rows)) == [
        'Rows 1, 2: unknown batch, initialisation.'
    ]


def seeds(scores, **changes):
    return [
        make_record(
            {
                'scores.box_ap': score,
                'training.seed': seed,
                'checkpoint.sha256': f'w{seed}',
                **changes,
            }
        )
        for seed, score in enumerate(scores)
    ]


def test_seeds_give_mean_and_spread():
    comparison = compare([*seeds([40.0, 41.0, 43.0]), make_segmentation()])
    detection, segmentation = comparison.sections
    (row,) = detection.rows
    assert row.scores['box_ap'].mean == pytest.approx(124 / 3)
    # By hand: the squared distances from the mean add up to 14/3.
    assert row.scores['box_ap'].std == pytest.approx((14 / 6) ** 0.5)
    assert (row.runs, row.seeds) == (3, [0, 1, 2])
    assert row.per_class['box_ap'] == {'cat': 50.0, 'dog': 30.0}
    assert detection.table()[1][2] == '41.33 ± 1.53'
    assert 'Row 1: runs of the seeds 0, 1, 2.' in detection.remarks()
    (single,) = segmentation.rows
    assert single.scores['miou'] == Value(44.5)
    assert '±' not in ''.join(segmentation.table()[1])


def test_a_score_that_runs_lack_says_so():
    (section,) = compare(seeds([40.0, None, 42.0])).sections
    assert section.table()[1][2] == '41.00 ± 1.41 (2)'


def test_the_same_weights_are_one_run():
    record = make_record()
    (section,) = compare([record, record]).sections
    (row,) = section.rows
    assert row.scores['box_ap'] == Value(40.0)
    assert section.remarks() == [
        'Row 1: 1 further test(s) of the same weights left out.'
    ]


@pytest.mark.parametrize(
    'changes',
    [
        {'training.config_sha256': 't9'},
        {'config.sha256': 'c9'},
        {'training.batch': dict(images=2)},
        {'training.config_sha256': None},
    ],
)
def test_other_recipes_are_other_rows(changes):
    records = [
        make_record(),
        make_record({'checkpoint.sha256': 'x'} | changes),
    ]
    (section,) = compare(records).sections
    labels = [row.label for row in section.rows]
    assert labels == ['mask-rcnn_one (1)', 'mask-rcnn_one (2)']


def test_times_of_different_devices_have_no_median():
    first, second = seeds([40.0, 41.0])
    second['latency'] = dict(ms=1.0, device='another GPU')
    (section,) = compare([first, second]).sections
    assert section.rows[0].latency is None
    assert section.rows[0].runs == 2


def test_missing_values_are_said_to_be():
    empty = make_record(
        {
            'config.name': 'empty',
            'scores': dict.fromkeys(make_record()['scores']),
            'per_class': {},
            'latency': None,
            'model': None,
            'training': None,
        }
    )
    (section,) = compare([make_record(), empty]).sections
    assert section.table()[2] == ['2', 'empty', *['n/a'] * 6, '1']
    assert section.costs()[2][2:4] == ['n/a', 'n/a']
    assert section.costs()[2][5:] == ['n/a'] * 4
    (alone,) = compare([empty]).sections
    assert alone.table() == [['#', 'run', 'runs'], ['1', 'empty', '1']]


class Page(HTMLParser):
    """Tags of a page, and what they refer to."""

    def __init__(self):
        super().__init__()
        self.tags, self.references = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        names = ('src', 'href', 'srcset', 'data', 'poster')
        self.references += [v for k, v in attrs if k in names]


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    """Folder of a comparison with everything in it."""
    folder = tmp_path_factory.mktemp('comparison')
    write_log(folder / 'run', '20260101_000000', EPOCHS)
    records = [
        *seeds([40.0, 41.0], **{'checkpoint.path': f'{folder}/run/e.pth'}),
        make_record({'config.name': 'a|<b>', 'per_class.box_ap.cat': 44.0}),
        make_segmentation(),
    ]
    compare(records, folder / 'out', published=True)
    return folder / 'out'


def test_page_needs_no_other_file(written):
    text = (written / 'comparison.html').read_text()
    page = Page()
    page.feed(text)
    assert not {'script', 'link', 'iframe', 'object'} & set(page.tags)
    assert 'url(' not in text and '@import' not in text
    start = 'data:image/png;base64,'
    # Costs and training of the detectors, one by class; costs of the other.
    assert len(page.references) == 4
    for reference in page.references:
        assert reference.startswith(start)
        png = base64.b64decode(reference.removeprefix(start))
        image = Image.open(io.BytesIO(png)).convert('L')
        assert min(image.size) > 200
        dark, light = image.getextrema()
        assert dark < 100 and light == 255
    assert 'a|&lt;b&gt;' in text and '<b>' not in text


def test_csv_and_markdown_hold_the_rows(written):
    with open(written / 'comparison.csv') as file:
        rows = list(csv.DictReader(file))
    mine = [row for row in rows if row['measured by'] == 'you']
    assert [row['run'] for row in mine] == [
        'mask-rcnn_one',
        'a|<b>',
        'upernet_two',
    ]
    assert float(mine[0]['box_ap']) == 40.5
    assert float(mine[0]['box_ap_std']) == pytest.approx(0.5**0.5)
    assert mine[0]['seeds'] == '0 1'
    assert mine[1]['box_ap_std'] == ''
    assert mine[2]['box_ap'] == ''
    assert float(mine[0]['flops_G']) == 267
    theirs = [row for row in rows if row['measured by'] == 'others']
    assert all(row['source'] for row in theirs)
    with open(written / 'per_class.csv') as file:
        classes = list(csv.DictReader(file))
    cats = [
        r for r in classes if (r['class'], r['score']) == ('cat', 'box_ap')
    ]
    assert [float(row['percent']) for row in cats] == [50.0, 44.0]
    assert not [row for row in classes if row['class'] == 'unicorn']
    text = (written / 'comparison.md').read_text()
    for table in re.findall(r'(?:^\|.*\n)+', text, re.M):
        lines = table.splitlines()
        widths = {len(re.findall(r'(?<!\\)\|', line)) for line in lines}
        assert len(widths) == 1
    assert '## Detection' in text and '## Segmentation' in text


def test_terminal_says_the_same():
    console = Console(width=120, record=True, file=io.StringIO())
    compare([*seeds([40.0, 41.0]), make_segmentation()]).show(console)
    text = console.export_text()
    for word in ('40.50 ± 0.71', '44.5', 'Detection', 'Segmentation', '267.0'):
        assert word in text


def test_published_rows_have_their_sources_and_numbers():
    theirs = {
        name: published.for_config(name)
        for name in (
            'mask-rcnn_swin-t_fpn_ms-crop-1x_coco',
            'mask-rcnn_swin-t_fpn_ms-crop-3x_coco',
        )
    }
    one_x, three_x = theirs
    records = [
        make_record({'config.name': one_x}),
        # The same by its backbone, method and schedule.
        make_record({'config.name': 'mine', 'config.sha256': 'c2'}),
        make_record({'config.name': three_x}),  # 12 epochs are not its 3x
        make_record({'config.name': 'small', 'test_data': OTHER_DATA}),
        make_record({'config.name': 'new', 'model.backbone': 'New-T'}),
        make_record({'config.name': 'flip', 'tta': True}),
    ]
    (section,) = compare(records, published=True).sections
    for row in section.rows[len(records) :]:
        assert row.published and row.names['method'] == 'Mask R-CNN'
        assert not row.label.startswith('Agent')
        for name in row.scores:
            assert row.sources[name]['text']
    labels = [row.label for row in section.rows]
    assert (
        theirs[one_x]['name'] in labels and theirs[three_x]['name'] in labels
    )
    swin = section.rows[labels.index(theirs[one_x]['name'])]
    assert swin.scores['box_ap'] == Value(theirs[one_x]['metrics']['box_ap'])
    lines = section.against_published()[1:]
    assert {line[0] for line in lines} == {one_x, 'mine'}
    wanted = theirs[one_x]['metrics']['box_ap']
    assert lines[0][1:] == [
        'box AP',
        '40.0',
        f'{wanted:g}',
        f'{40.0 - wanted:+.2f}',
    ]
    text = ' '.join(section.silent)
    assert f'{three_x}: not comparable' in text
    assert 'trained for 36 epochs instead of 12 epochs' in text
    assert 'small: not comparable' in text and 'tested on COCO' in text
    assert 'Nothing was published for new.' in text
    assert len(section.sources()) >= 1


def test_augmented_tests_are_compared_with_augmented_ones():
    record = make_segmentation(
        {'tta': True, 'scores.miou': 46.0, 'model.backbone': 'Swin-T'}
    )
    (section,) = compare([record], published=True).sections
    row = published.for_config('upernet_swin-t_8xb2-160k_ade20k-512x512')
    (difference,) = section.differences
    assert difference.published == row['metrics']['miou_ms']


def write_log(folder, start, lines, name='scalars.json'):
    """The log of one start of a run."""
    place = folder / start / 'vis_data'
    place.mkdir(parents=True)
    text = [
        line if isinstance(line, str) else json.dumps(line) for line in lines
    ]
    (place / name).write_text('\n'.join(text) + '\n')


def train(step, loss, epoch=None):
    about = {} if epoch is None else dict(epoch=epoch)
    return dict(loss=loss, iter=step, step=step, **about)


def test_map(step, value):
    return {'coco/bbox_mAP': value, 'step': step}


test_map.__test__ = False
EPOCHS = [
    train(10, 3.0, 1),
    train(20, 2.0, 1),
    test_map(1, 0.1),
    train(30, 1.5, 2),
    train(40, 1.0, 2),
    test_map(2, 0.2),
    train(50, 0.9, 3),
]


def test_resumed_epochs_replace_what_they_repeat(tmp_path):
    write_log(tmp_path, '20260101_000000', EPOCHS)
    # Resumed from epoch 1: what came later is trained again.
    again = [
        train(30, 1.4, 2),
        train(40, 0.8, 2),
        test_map(2, 0.25),
        '{"loss": 0.',  # killed while writing
    ]
    write_log(tmp_path, '20260102_000000', again)
    # A test of the run logs there, too.
    write_log(tmp_path, '20260103_000000', [test_map(0, 0.99)])
    curves = read_curves(tmp_path)
    assert curves.loss == [(10, 3.0), (20, 2.0), (30, 1.4), (40, 0.8)]
    assert curves.scores['box_ap'] == [(1, 10.0), (2, 25.0)]
    assert curves.unit == 'epoch'
    assert curves.by_iteration('box_ap') == [(20, 10.0), (40, 25.0)]


def test_resumed_iterations_and_dated_logs(tmp_path):
    write_log(
        tmp_path,
        '20260101_000000',
        [train(s, 1 / s) for s in (50, 100, 150)]
        + [{'mIoU': 20.0, 'step': 100}, {'mIoU': 21.0, 'step': 150}],
    )
    write_log(
        tmp_path,
        '20260102_000000',
        [
            train(150, 0.5),
            train(200, 0.4),
            {'mIoU': float('nan'), 'step': 150},
            {'mIoU': 30.0, 'step': 200},
        ],
        name='20260102_000000.json',
    )
    curves = read_curves(tmp_path)
    assert [step for step, _ in curves.loss] == [50, 100, 150, 200]
    assert dict(curves.loss)[150] == 0.5
    assert curves.scores['miou'] == [(100, 20.0), (200, 30.0)]
    assert curves.unit == 'iteration'


def test_a_fresh_start_replaces_everything(tmp_path):
    write_log(tmp_path, '20260101_000000', EPOCHS)
    write_log(tmp_path, '20260102_000000', [train(10, 9.0, 1)])
    curves = read_curves(tmp_path)
    assert curves.loss == [(10, 9.0)]
    assert curves.scores == {}


def test_epochs_validated_by_iteration(tmp_path):
    lines = [train(10, 1.0, 1), test_map(10, -1.0), test_map(20, 0.5)]
    write_log(tmp_path, '20260101_000000', lines)
    curves = read_curves(tmp_path)
    assert curves.unit == 'iteration'
    assert curves.scores['box_ap'] == [(20, 50.0)]


def test_curves_of_runs_and_folders(tmp_path):
    write_log(tmp_path / 'run', '20260101_000000', EPOCHS)
    iterations = [train(50, 1.0), {'mIoU': 20.0, 'step': 50}]
    write_log(tmp_path / 'seg', '20260101_000000', iterations)
    record = make_record({'checkpoint.path': f'{tmp_path}/run/epoch_3.pth'})
    comparison = compare(
        [record], tmp_path / 'out', folders=[tmp_path / 'seg']
    )
    assert [name for name, *_ in comparison.curves['detection']] == [
        '1  mask-rcnn_one'
    ]
    assert [name for name, *_ in comparison.curves['segmentation']] == ['seg']
    page = (tmp_path / 'out' / 'comparison.html').read_text()
    assert page.count('<h3>Training</h3>') == 2
    with pytest.raises(LaunchError, match='no training log'):
        compare([record], folders=[tmp_path])


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('{', 'not a JSON file'),
        ('[1]', 'holds a list'),
        ('{"task": "detection"}', "no 'scores'"),
        (json.dumps(make_record({'scores.box_ap': 'x'})), "'box_ap' is 'x'"),
        (json.dumps(make_record({'config': None})), "no 'config'"),
        (None, 'No such file'),
    ],
)
def test_what_is_no_record(tmp_path, text, words):
    path = tmp_path / 'a.json'
    if text is not None:
        path.write_text(text)
    with pytest.raises(LaunchError, match=words) as caught:
        read_record(path)
    assert str(path) in str(caught.value)


def test_tool(tmp_path):
    (tmp_path / 'a.json').write_text(json.dumps(make_record()))
    done = run_script(
        tmp_path, TOOLS / 'compare.py', 'a.json', '--published', '--out', 'o'
    )
    assert done.returncode == 0, done.output
    assert 'mask-rcnn_one' in done.output and '40.0' in done.output
    assert sorted(path.name for path in (tmp_path / 'o').iterdir()) == [
        'comparison.csv',
        'comparison.html',
        'comparison.md',
        'per_class.csv',
    ]


def test_tool_names_every_bad_file(tmp_path):
    (tmp_path / 'a.json').write_text(json.dumps(make_record()))
    (tmp_path / 'b.json').write_text('{')
    done = run_script(
        tmp_path,
        *(TOOLS / 'compare.py', 'a.json', 'b.json', 'c.json', '--out', 'o'),
    )
    assert done.returncode == 1
    lines = done.output.strip().splitlines()
    assert len(lines) == 2
    assert 'b.json' in lines[0] and 'c.json' in lines[1]
    assert not (tmp_path / 'o').exists()

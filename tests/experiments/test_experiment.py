"""The experiment: its runs are fair, its finished ones kept, all reported."""

import copy
import json
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from tiny import build_model

from experiments import comparison, one_run
from experiments import runs as experiment
from experiments.comparison import CONFIGS, CONTROL, MODELS, PAIRS
from experiments.one_run import DATA, RESULT, load_config
from experiments.shapes import CLASSES, ShapesConfig, make_shapes
from inline_mm.engine.facts import hash_config
from inline_mm.errors import LaunchError

ROOT = Path(__file__).parents[2]


@cache
def read_text(config, seed, options, iterations):
    return load_config(config, seed, json.loads(options), iterations)


def read_once(config, seed, options, iterations):
    """Reading a config is what takes time here."""
    return read_text(config, seed, json.dumps(options), iterations)


SHAPES = ShapesConfig(train=16, val=4)
TASKS = dict(zip(CONFIGS, ('detection', 'segmentation'), strict=True))


@pytest.fixture(scope='module')
def real(tmp_path_factory):
    """A folder with one finished run of each task, one frozen."""
    out = tmp_path_factory.mktemp('experiment')
    make_shapes(out / DATA, SHAPES)
    runs = comparison.list_runs(ROOT / 'configs', 1, 1)
    runs = [
        runs[0],
        next(r for r in runs if r.variant and 'fpn_pvt_s' in r.name),
    ]
    for run in runs:
        code = experiment._run(run, out, 2)
        assert code == 0, experiment._log(run, out).read_text()
    return out, runs


def read(out, run):
    return json.loads((out / 'runs' / run.name / RESULT).read_text())


def test_a_run_leaves_its_record(real, monkeypatch):
    out, (detector, segmentor) = real
    for run, task in ((detector, 'detection'), (segmentor, 'segmentation')):
        found = read(out, run)
        assert found['task'] == task
        assert found['training']['iterations'] == 2
        assert found['training']['seed'] == 0
        assert found['test_data'][0]['images'] == SHAPES.val
        assert found['model']['input_shape'] == [64, 64]
        part = found['model']['backbone_part']
        assert 0 < part['params'] < found['model']['params']
        assert experiment._is_done(run, out, 2)
        assert not experiment._is_done(run, out, 3)
    with monkeypatch.context() as patch:
        patch.setattr(one_run, 'hash_code', lambda: 'of other backbones')
        assert not experiment._is_done(detector, out, 2)
    assert set(read(out, detector)['per_class']['box_ap']) == set(CLASSES)


@pytest.mark.parametrize('number', [0, 1], ids=['trained', 'frozen'])
def test_the_control_leaves_the_backbone_alone(real, number):
    out, runs = real
    run = runs[number]
    weights = torch.load(
        out / 'runs' / run.name / 'iter_2.pth', weights_only=False
    )['state_dict']
    cfg = load_config(str(run.config), run.seed, run.options, 2)
    # Norms begin at one and biases at zero: what moved isn't that any more.
    model = build_model(cfg)
    model.init_weights()
    moved = {
        name.split('.')[0]
        for name, start in model.named_parameters()
        if name.endswith('bias') or (start == 1).all()
        if not start.any() or (start == 1).all()
        if not torch.equal(weights[name], start)
    }
    assert ('backbone' in moved) == (not run.options)
    assert len(moved) > 1 or not run.options
    assert moved - {'backbone'}


@pytest.fixture
def fake(real, monkeypatch):
    """Runs that take no time; what they were is noted."""
    out, runs = real
    templates = {read(out, run)['task']: read(out, run) for run in runs}
    called = []
    monkeypatch.setattr(experiment, 'load_config', read_once)

    def run_nothing(run, out, iterations):
        called.append(run.name)
        task = next(
            t for c, t in TASKS.items() if run.config.match(c.format('*'))
        )
        cfg = read_once(str(run.config), run.seed, run.options, iterations)
        found = copy.deepcopy(templates[task])
        found['config'].update(sha256=hash_config(cfg), name=run.config.stem)
        found['training'].update(seed=run.seed, config_sha256=hash_config(cfg))
        found['checkpoint'].update(path=None, sha256=run.name)
        for score in ('box_ap', 'mask_ap', 'miou'):
            if score in found['scores']:
                found['scores'][score] = (
                    10.0 + run.seed - 5 * bool(run.options)
                )
        folder = out / 'runs' / run.name
        folder.mkdir(parents=True)
        (folder / RESULT).write_text(json.dumps(found))
        return 0

    monkeypatch.setattr(experiment, '_run', run_nothing)
    return called


def conduct(out, said=None, seeds=2, write_report=None):
    experiment.run_experiment(
        comparison.list_runs(ROOT / 'configs', seeds, 1),
        write_report or comparison.write_report,
        out,
        SHAPES,
        jobs=2,
        iterations=2,
        say=(said if said is not None else []).append,
    )


def test_reports_every_run(fake, tmp_path):
    said = []
    conduct(tmp_path, said)
    assert len(fake) == len(set(fake)) == 2 * len(CONFIGS) * 4 + 8
    assert len(said) == len(fake) + 1
    text = (tmp_path / 'comparison.md').read_text()
    for label in MODELS:
        rows = [x for x in text.splitlines() if x.startswith(f'| {label} |')]
        assert len(rows) == 2
        assert all('10.50 ± 0.71 (2)' in row for row in rows)
        assert all('5.0' in row for row in rows)
    for ours, theirs in PAIRS:
        assert f'mIoU, {ours} less {theirs}: +0.00 ± 0.00 over 2' in text
    assert text.count('Better: undecided.') == 6
    assert (
        'mIoU, worst trained and best frozen run: InLine-PVT 10.0 and 5.0'
        in text
    )
    assert text.count('; every backbone learns something that counts.') == 3
    assert 'Semantic FPN 2 iterations of 8 images' in text
    assert (tmp_path / 'comparison.png').stat().st_size > 10_000
    tables = (tmp_path / 'tables/comparison.md').read_text()
    assert all(f'{label}{CONTROL}' in tables for label in MODELS)
    assert (tmp_path / 'tables/comparison.html').is_file()


def test_keeps_finished_runs_of_the_same_config(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, 'compare', Mock())
    conduct(tmp_path, seeds=1, write_report=Mock())
    fake.clear()
    conduct(tmp_path, seeds=1, write_report=Mock())
    assert fake == []
    lost, other = sorted((tmp_path / 'runs').iterdir())[:2]
    for path in (lost / RESULT, lost):
        path.unlink() if path.is_file() else path.rmdir()
    found = json.loads((other / RESULT).read_text())
    found['config']['sha256'] = 'of another config'
    (other / RESULT).unlink()
    other.rmdir()
    other.with_name('kept').mkdir()
    (other.with_name('kept') / RESULT).write_text(json.dumps(found))
    conduct(tmp_path, seeds=1, write_report=Mock())
    assert sorted(fake) == sorted([lost.name, other.name])
    fake.clear()
    conduct(tmp_path, seeds=2, write_report=Mock())
    assert len(fake) == 8


def test_failed_runs_are_named_and_the_others_kept(
    fake, tmp_path, monkeypatch
):
    succeed = experiment._run

    def fail_once(run, out, iterations):
        if 'swin_fpn' in run.name:
            return 1
        return succeed(run, out, iterations)

    with monkeypatch.context() as patch:
        patch.setattr(experiment, '_run', fail_once)
        with pytest.raises(LaunchError, match='4 of 16 runs failed') as error:
            conduct(tmp_path, seeds=1)
    assert 'mask-rcnn_swin_fpn_shapes-64x64_seed-0.log' in str(error.value)
    assert not (tmp_path / 'comparison.md').exists()
    assert len(fake) == 12


def test_controls_that_reach_trained_runs_are_said(
    fake, tmp_path, monkeypatch
):
    monkeypatch.setattr(experiment, 'compare', Mock())
    conduct(tmp_path, seeds=1)
    for path in (tmp_path / 'runs').glob('*_pvt_*frozen_seed-0/result.json'):
        found = json.loads(path.read_text())
        found['scores'] = dict.fromkeys(found['scores'], 10.0)
        path.write_text(json.dumps(found))
    conduct(tmp_path, seeds=1)
    text = (tmp_path / 'comparison.md').read_text()
    assert text.count('; not above: PVT, whose scores say nothing') == 3


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (['ablations', '--controls', '1'], '--controls is of comparison'),
        (['--seeds', '1', '--controls', '2'], 'expected at most --seeds, 1'),
        (['--seeds', '0'], '0 is not positive'),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words, tmp_path):
    done = subprocess.run(
        [sys.executable, '-m', 'experiments', *options],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and words in done.stderr
    assert not any(tmp_path.iterdir())


def test_models_of_a_task_differ_in_their_backbone_alone():
    for config in CONFIGS:
        others = []
        for model in MODELS.values():
            path = ROOT / 'configs' / config.format(model)
            cfg = load_config(str(path), 0, {}, None)
            built = build_model(cfg)
            dims = cfg.model.neck.in_channels
            assert dims == [24, 48, 96, 192]
            kind = type(built.backbone).__name__
            assert kind.startswith('InLine') == model.startswith('inline')
            content = cfg.to_dict()
            content['model'].pop('backbone')
            others.append(content)
        assert all(other == others[0] for other in others)
        classes = others[0]['classes']
        assert classes[-len(CLASSES) :] == CLASSES


@pytest.mark.heavy
def test_survives_being_killed(tmp_path):
    """Everything for real, killed in the middle of it."""
    command = [
        *(sys.executable, '-m', 'experiments'),
        *('--out', tmp_path, '--seeds', '1', '--iterations', '2'),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    runs = tmp_path / 'runs'
    while len(list(runs.glob(f'*/{RESULT}'))) < 2:
        time.sleep(0.5)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {p: p.stat().st_mtime_ns for p in runs.glob(f'*/{RESULT}')}
    time.sleep(3)  # its runs end with it
    assert len(list(runs.glob(f'*/{RESULT}'))) <= len(before) + 2
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        before.items()
        <= {p: p.stat().st_mtime_ns for p in runs.glob(f'*/{RESULT}')}.items()
    )
    assert len(list(runs.glob(f'*/{RESULT}'))) == 16
    assert '| InLine-Swin |' in (tmp_path / 'comparison.md').read_text()

"""What the launchers refuse, and what the shell scripts start."""

import os
import subprocess
import sys

import pytest
import torch
from forked import ENVIRONMENT, run_script
from tiny import CHECKPOINT, DET, OPTIONS, SEG, TOOLS, lay_out_data


def refused(folder, *command):
    """The output of a launcher that must end with one sentence."""
    done = run_script(folder, *command)
    assert done.returncode not in (0, None)
    assert 'Traceback' not in done.output
    return done.output.splitlines()[-1]


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (
            ['mask-rcnn_inline-pvt-x_fpn_1x_coco.py'],
            ['neither a file nor the name', DET],
        ),
        ([DET, '--cfg-options', 'a'], ["KEY=VALUE, got 'a'"]),
        (
            [DET, '--cfg-options', 'train_dataloader.dataset.pipeline.9.a=1'],
            ['--cfg-options do not fit', 'Index 9'],
        ),
        ([DET, '--resume', 'none.pth'], ['none.pth: no such file']),
        ([DET, '--work-dir', 'file'], ['--work-dir file is not a folder']),
        (['file'], ['file can not be read']),
        (['wrong.py'], ['wrong.py can not be read', 'line 1']),
        (
            [DET, '--cfg-options', 'model.backbone.arch=huge'],
            ["one of 'tiny'", "got 'huge'"],
        ),
        (
            [DET, '--cfg-options', 'model.backbone.drop_path=0.2'],
            ["unexpected keyword argument 'drop_path'"],
        ),
        ([DET, '--amp'], ['--amp needs a GPU']),
        ([DET, '--launcher', 'slurm'], ['needs GPUs', 'torchrun']),
        ([DET, '--cfg-options', 'default_scope=mmpose'], ["'mmpose'"]),
        (
            [DET, '--auto-scale-lr', '--cfg-options', 'auto_scale_lr={}'],
            ['auto_scale_lr.base_batch_size'],
        ),
        (
            [DET, '--cfg-options', 'model.backbone.init_cfg=None'],
            ['instances_train2017.json', 'current folder'],
        ),
        (
            [
                DET,
                '--cfg-options',
                'model.backbone.init_cfg.checkpoint=none.pth',
                *OPTIONS[DET][7:],
            ],
            ['none.pth'],
        ),
    ],
)
def test_train_refuses(tmp_path, arguments, words):
    if 'model.backbone.init_cfg.checkpoint=none.pth' in arguments:
        lay_out_data(tmp_path)
    (tmp_path / 'file').touch()
    (tmp_path / 'wrong.py').write_text('model = dict(')
    sentence = refused(tmp_path, TOOLS / 'train.py', *arguments)
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([DET, 'none.pth'], ["'none.pth' is not a file", 'a.pth']),
        ([DET, 'empty.pth'], ['empty.pth', 'empty']),
        ([DET, 'page.pth'], ['page.pth', 'web page']),
        ([DET, 'official.pth'], ["under 'model'", '--keep-head']),
        (
            [SEG, 'a.pth', '--tta', '--cfg-options', 'tta_pipeline=None'],
            ['tta_model and tta_pipeline'],
        ),
        ([DET, 'a.pth', '--out', 'a.json'], ['.pkl', "'a.json'"]),
        ([DET, 'a.pth', '--tta'], ['boxes only', 'mask_head=None']),
        (
            ['inline-pvt-tiny_8xb128_in1k', 'a.pth', '--tta', '--show-dir=d'],
            ["don't go together"],
        ),
    ],
)
def test_test_refuses(tmp_path, arguments, words):
    torch.save(dict(state_dict={}), tmp_path / 'a.pth')
    torch.save(dict(model={}), tmp_path / 'official.pth')
    (tmp_path / 'empty.pth').touch()
    (tmp_path / 'page.pth').write_text('<!DOCTYPE html><html></html>')
    sentence = refused(tmp_path, TOOLS / 'test.py', *arguments)
    for word in words:
        assert word in sentence


def test_test_refuses_weights_that_leave_the_model_random(tmp_path):
    lay_out_data(tmp_path)
    other = dict(state_dict={'head.weight': torch.zeros(1)})
    torch.save(other, tmp_path / 'other.pth')
    sentence = refused(
        tmp_path,
        TOOLS / 'test.py',
        DET,
        'other.pth',
        '--cfg-options',
        *OPTIONS[DET],
    )
    for word in ('fills 0 of', "'backbone.", '--keep-head'):
        assert word in sentence


def shell(folder, script, *arguments, **variables):
    """Runs one of the shell scripts with more environment variables."""
    return subprocess.run(
        [TOOLS / script, *arguments],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
    )


SCRIPTS = {
    'dist_train.sh': ['a config.py', '2'],
    'dist_test.sh': ['a config.py', 'a b.pth', '2'],
    'slurm_train.sh': ['gpu', 'a job', 'a config.py', 'a folder'],
    'slurm_test.sh': ['gpu', 'a job', 'a config.py', 'a b.pth'],
}
STARTED = {
    'dist_train.sh': ['a config.py', '--launcher', 'pytorch'],
    'dist_test.sh': ['a config.py', 'a b.pth', '--launcher', 'pytorch'],
    'slurm_train.sh': [
        *('a config.py', '--work-dir', 'a folder', '--launcher', 'slurm')
    ],
    'slurm_test.sh': ['a config.py', 'a b.pth', '--launcher', 'slurm'],
}


@pytest.mark.parametrize('script', SCRIPTS)
def test_scripts_show_their_usage(script, tmp_path):
    done = shell(tmp_path, script, *SCRIPTS[script][:-1])
    assert done.returncode == 2
    assert done.stderr.startswith(f'Usage: {script} ')


@pytest.fixture
def recorder(tmp_path):
    """A program, also called srun, that prints its arguments line by line."""
    path = tmp_path / 'bin' / 'srun'
    path.parent.mkdir()
    path.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize('script', SCRIPTS)
def test_scripts_keep_arguments_whole(script, tmp_path, recorder):
    done = shell(
        tmp_path,
        script,
        *SCRIPTS[script],
        '--cfg-options',
        'a=(1, 2)',
        PYTHON=str(recorder),
        PATH=f'{recorder.parent}:{os.environ["PATH"]}',
        GPUS='4',
        SRUN_ARGS='--exclusive --mem 8G',
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    tool = str(TOOLS / script.split('_')[1].replace('.sh', '.py'))
    assert lines[lines.index(tool) + 1 :] == [
        *STARTED[script],
        '--cfg-options',
        'a=(1, 2)',
    ]
    if script.startswith('slurm'):
        before = ' '.join(lines)
        assert '--ntasks 4 --ntasks-per-node 4' in before
        assert '--exclusive --mem 8G' in before
    else:
        assert '--standalone' in lines


def test_dist_script_on_several_machines(tmp_path, recorder):
    arguments = SCRIPTS['dist_train.sh']
    done = shell(tmp_path, 'dist_train.sh', *arguments, NNODES='2')
    assert done.returncode != 0
    assert 'NODE_RANK' in done.stderr
    done = shell(
        tmp_path,
        'dist_train.sh',
        *arguments,
        PYTHON=str(recorder),
        NNODES='2',
        NODE_RANK='1',
        MASTER_ADDR='10.0.0.1',
    )
    assert (
        '--nnodes 2 --node-rank 1 --master-addr 10.0.0.1 --master-port 29500'
    ) in done.stdout.replace('\n', ' ')


@pytest.mark.heavy
@pytest.mark.parametrize('name', [DET, SEG])
def test_two_processes_without_a_gpu(name, tmp_path):
    """Also with SyncBN, which has no CPU kernel."""
    lay_out_data(tmp_path)
    trained = shell(
        tmp_path,
        'dist_train.sh',
        name,
        '2',
        '--work-dir=out',
        '--cfg-options',
        *OPTIONS[name],
        PYTHON=sys.executable,
    )
    assert trained.returncode == 0, trained.stderr[-3000:]
    assert '2 in each of 2 process(es)' in trained.stdout
    tested = shell(
        tmp_path,
        'dist_test.sh',
        name,
        f'out/{CHECKPOINT[name]}',
        '2',
        '--cfg-options',
        *OPTIONS[name],
        PYTHON=sys.executable,
    )
    assert tested.returncode == 0, tested.stderr[-3000:]

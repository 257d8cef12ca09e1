"""The ablations: what is compared, and what their report says of it."""

from pathlib import Path

import pytest
import torch
from tiny import build_model

from experiments import ablations
from experiments.ablations import (
    ATTENTIONS,
    CONFIGS,
    DEIT,
    DIVISION,
    RESIDUAL,
    SOFTMAX,
    SUBTRACTION,
    SWIN,
    WINDOWS,
    compare_step,
)
from experiments.one_run import load_config
from inline_mm.layers import InLineAttention, WindowAttention
from inline_mm.ops import divide_attention, inline_attention, softmax_attention

ROOT = Path(__file__).parents[2]
WANTED = {
    DIVISION: (divide_attention, 'ReLU', False),
    SUBTRACTION: (inline_attention, 'ReLU', False),
    RESIDUAL: (inline_attention, 'ReLU', True),
    SOFTMAX: (softmax_attention, 'Identity', False),
}


def list_runs():
    return ablations.list_runs(ROOT / 'configs', 3)


def test_the_papers_numbers_are_there():
    """As read; what isn't known isn't there."""
    assert ablations.published_top1() == {
        (SWIN, DIVISION): 77.3,
        (SWIN, SUBTRACTION): 79.8,
        (SWIN, RESIDUAL): 82.5,
        (SWIN, WINDOWS): 81.3,
        (DEIT, RESIDUAL): 74.5,
        (DEIT, SOFTMAX): 72.2,
    }


def test_three_seeds_of_everything():
    runs = list_runs()
    assert len(runs) == len({run.name for run in runs}) == 3 * 9
    assert {run.seed for run in runs[:9]} == {0}
    labels = {run.label for run in runs}
    assert {
        f'{model}, {name}' for model, name in ablations.published_top1()
    } <= labels


@pytest.mark.parametrize('run', list_runs()[:9], ids=lambda run: run.name)
def test_every_block_has_the_attention_of_its_label(run):
    cfg = load_config(str(run.config), run.seed, run.options, None)
    model = build_model(cfg)
    layers = [m for m in model.modules() if isinstance(m, InLineAttention)]
    name = run.label.split(', ', 1)[1]
    if name == WINDOWS:
        kinds = [
            block.attn for s in model.backbone.stages for block in s.blocks
        ]
        assert all(isinstance(kind, WindowAttention) for kind in kinds)
        return
    assert len(layers) == 6
    attend, kernel, residual = WANTED[name]
    for layer in layers:
        assert layer.attend is attend
        assert type(layer.kernel).__name__ == kernel
        assert (layer.kernel_predictor is not None) == residual
    # The head mixes no tokens of the one without stages.
    if DEIT in run.label:
        convs = [
            m
            for m in model.decode_head.modules()
            if isinstance(m, torch.nn.Conv2d)
        ]
        assert all(conv.kernel_size == (1, 1) for conv in convs)


def test_variants_of_a_model_differ_in_their_attention_alone():
    for model in CONFIGS:
        contents = []
        for run in list_runs()[:9]:
            if not run.label.startswith(model):
                continue
            content = load_config(
                str(run.config), run.seed, run.options, None
            ).to_dict()
            backbone = content['model']['backbone']
            for key in ('kernel', 'normalization', 'local_residual'):
                backbone.pop(key, None)
            backbone['arch'].pop('inline_depths', None)
            contents.append(content)
        assert len(contents) == (5 if model == SWIN else 4)
        assert all(content == contents[0] for content in contents)


@pytest.mark.parametrize(
    ('values', 'paper', 'verdict'),
    [
        # 1.5 ± 0.5 of three: t 5.2, more than the 4.3 of 95 %.
        ([1.0, 2.0, 1.5], 2.5, 'Agrees in direction with the paper (+2.5)'),
        ([-1.0, -2.0, -1.5], 2.5, 'DISAGREES with the paper (+2.5)'),
        ([-1.0, -2.0, -1.5], -2, 'Agrees in direction with the paper (-2.0)'),
        ([1.0, 2.5, 1.5], 2.5, 'Undecided here, +2.5 in the paper'),
        ([1.0, -0.1, 1.5], 2.5, 'Undecided here, +2.5 in the paper'),
        ([1.0], 2.5, 'Undecided here, +2.5 in the paper'),
        ([1.0, 2.0, 1.5], None, 'No number of the paper to compare with'),
    ],
)
def test_verdicts_go_by_the_interval_of_the_mean(values, paper, verdict):
    assert compare_step(values, paper).endswith(f' {verdict}.')


def make_record(run, score):
    return dict(
        label=run.label,
        task='segmentation',
        config=dict(name=run.config.stem, sha256=run.label),
        training=dict(
            seed=run.seed,
            iterations=700,
            batch=dict(images=8),
            config_sha256=run.label,
        ),
        checkpoint=dict(path=None, sha256=run.name),
        test_data=[dict(name='x', images=4, classes=5, sha256='x')],
        scores=dict(miou=score),
        per_class={},
        model=dict(backbone_part=dict(params=5e5, flops=1e8)),
        shapes=dict(size=64, train=16, val=4, seed=0),
        seconds=60.0,
        date='2000-01-01 00:00',
        versions=dict(torch='2', inline_mm='1'),
    )


def test_reports_what_was_found_whichever_way_it_falls(tmp_path):
    gain = {DIVISION: 5.0, SUBTRACTION: 0.0, RESIDUAL: 9.0}
    records = [
        make_record(
            run, 50 + gain.get(run.label.split(', ', 1)[1], 2.0) + run.seed
        )
        for run in list_runs()
    ]
    ablations.write_report(records, tmp_path)
    text = (tmp_path / 'ablations.md').read_text()
    assert '| division | 56.00 ± 1.00 (3) | 77.3 | 0.500 | 100 |' in text
    words = ' '.join(text.split())
    assert (
        'Of 4 steps that the paper has a number for, 3 are decided here and '
        'agree with it in direction, 1 are decided and disagree, 0 are '
        "undecided. The mean alone goes the paper's way in 3 of them."
    ) in words
    lines = text.splitlines()
    lost = '- "subtraction" less "division" (+0% parameters): -5.00 ± '
    assert sum(line.startswith(lost) for line in lines) == 2
    assert '700 iterations of 8 images' in text
    assert '0 of them. DISAGREES with the paper (+2.5).' in text
    won = '7.00 ± 0.00 over 3 seeds; more with 3 of them. Agrees in direction'
    assert f'(+0% parameters): +{won} with the paper (+2.3).' in text
    assert (tmp_path / 'ablations.png').stat().st_size > 10_000
    assert set(ATTENTIONS) <= {
        line.split(' | ')[0].strip('| ') for line in text.splitlines()
    }

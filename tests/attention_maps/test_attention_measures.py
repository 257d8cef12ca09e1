"""What attention analysis measures, against small computations."""

import numpy as np
import pytest
import torch
from mmengine.registry import MODELS
from small_archs import ARCHS

from inline_mm.attention_maps import blocks, measures
from inline_mm.attention_maps.features import Features, collect
from inline_mm.ops import naive

NAIVE = {
    'subtract': naive.naive_inline_attention,
    'divide': naive.naive_divide_attention,
    'softmax': naive.naive_softmax_attention,
}


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def gram_of(matrix):
    return matrix @ matrix.mT


# Weights and ranks.


@pytest.mark.parametrize('method', measures.METHODS)
def test_weights_give_the_output_of_the_definition(method):
    q, k, v = (draw(12, 4, seed=seed).abs() for seed in range(3))
    weights = measures.attention_weights(q, k, method)
    torch.testing.assert_close(weights.sum(1), torch.ones(12).double())
    torch.testing.assert_close(weights @ v, NAIVE[method](q, k, v))


def test_division_by_zero_is_guarded():
    q = torch.zeros(2, 3)
    weights = measures.attention_weights(q, draw(5, 3), 'divide')
    assert torch.equal(weights, torch.zeros(2, 5).double())


@pytest.mark.parametrize('number', [1, 2, 7])
def test_effective_rank_of_an_identity_is_its_size(number):
    gram = 3 * torch.eye(number, dtype=torch.float64)
    assert measures.effective_rank(gram) == pytest.approx(number)


def test_effective_rank_of_other_matrices():
    outer = draw(6, 1) @ draw(1, 9, seed=1)
    assert measures.effective_rank(gram_of(outer)) == pytest.approx(
        1, abs=1e-6
    )
    # Singular values 3 and 1: shares 3/4 and 1/4.
    gram = torch.diag(torch.tensor([9.0, 1.0]).double())
    assert measures.effective_rank(gram) == pytest.approx(4 / 3**0.75)
    assert np.isnan(measures.effective_rank(torch.zeros(3, 3).double()))


# Injectivity.


def compare(q, k, method):
    weights = measures.attention_weights(q, k, method)
    doubled = measures.attention_weights(2 * q, k, method)
    return measures.injectivity(
        q, gram_of(weights), (doubled - weights).norm(dim=1)
    )


def test_distances_are_those_of_torch():
    rows = draw(9, 5)
    found = measures.pair_distances(gram_of(rows))
    torch.testing.assert_close(found, torch.pdist(rows))


@pytest.mark.parametrize(
    ('method', 'collide'),
    [('divide', True), ('subtract', False), ('softmax', False)],
)
def test_only_division_confuses_collinear_queries(method, collide):
    q = torch.linspace(0.5, 4, 8).double()[:, None] * draw(4).abs()
    found = compare(q, draw(20, 4, seed=1).abs(), method)
    assert found.collision_rate == collide
    assert (found.lowest_slope > 0.05) != collide
    assert (found.doubling > 0.05) != collide


def test_rate_counts_the_distinct_pairs_that_agree():
    # Two queries in one place, and their doubles; a relu keeps two of three.
    q = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    found = compare(q.double(), draw(30, 2).abs(), 'divide')
    assert found.collision_rate == pytest.approx(2 / 6)
    assert found.lowest_slope == pytest.approx(0, abs=1e-6)
    rates = [compare(q.double(), draw(30, 2).abs(), m) for m in NAIVE]
    assert [found.collision_rate for found in rates][::2] == [0, 0]


def test_subtraction_confuses_queries_where_keys_lack_rank():
    keys = draw(20, 4)
    keys[:, 2:] = 1.0  # all keys agree there
    q = torch.zeros(3, 4).double()
    q[:, 3] = torch.arange(3)
    assert compare(q, keys, 'subtract').collision_rate == 1


def test_nothing_to_compare():
    k = draw(5, 3)
    assert compare(draw(1, 3), k, 'subtract') is None
    same = compare(draw(1, 3).expand(4, 3), k, 'subtract')
    assert np.isnan(same.collision_rate)


# Locality.


def loops(weights, rows, hw_shape, side, kernels=None):
    """Share of the absolute weights inside, pair by pair."""
    _, width = hw_shape
    shares = []
    for line, row in zip(weights.tolist(), rows.tolist(), strict=True):
        y, x = divmod(row, width)
        for taps in [None] if kernels is None else kernels.tolist():
            total = inside = 0
            for token, weight in enumerate(line):
                down, right = token // width - y, token % width - x
                far = max(abs(down), abs(right))
                if taps is not None and far <= 1:
                    weight += taps[3 * (down + 1) + right + 1]
                total += abs(weight)
                inside += abs(weight) * (far <= side // 2)
            shares.append(inside / total)
    return np.mean(shares)


def test_shares_against_loops():
    hw, rows = (4, 6), torch.tensor([0, 8, 9, 17, 23])
    weights, kernels = draw(5, 24), draw(3, 9, seed=1)
    around = measures.Neighbourhood.of(rows, hw, 0)
    both = around.shares_with_local(weights, kernels)
    for index, side in enumerate(measures.SIDES):
        for found, *more in (
            (around.shares(weights)[index],),
            (both[index], kernels),
        ):
            expected = loops(weights, rows, hw, side, *more)
            assert found.item() == pytest.approx(expected)
        uniform = loops(torch.ones(5, 24), rows, hw, side)
        assert around.uniform(24)[index].item() == pytest.approx(uniform)


@pytest.mark.parametrize('prefix', [0, 1])
@pytest.mark.parametrize(
    ('step', 'expected'), [(0, [1, 1, 1]), (2, [0, 1, 1]), (3, [0, 0, 1])]
)
def test_shares_of_one_hot_weights(step, expected, prefix):
    rows = torch.arange(9 * 5)  # of 9 x 9 tokens: three lines may follow
    weights = torch.zeros(len(rows), prefix + 81).double()
    weights[rows, prefix + rows + 9 * step] = 1
    around = measures.Neighbourhood.of(rows, (9, 9), prefix)
    assert around.shares(weights).tolist() == expected


def test_queries_without_weight_are_left_out():
    around = measures.Neighbourhood.of(torch.arange(2), (5, 5), 0)
    weights = torch.zeros(2, 25).double()
    assert around.shares(weights).isnan().all()
    weights[0, 24] = 1
    assert around.shares(weights).tolist() == [0, 0, 0]


# What the blocks make.


def naive_output(module, features):
    """A block's output by the weights of each channel."""
    weights = []
    height, width = features.hw_shape
    places = torch.arange(height * width)
    down = places[None, :] // width - places[:, None] // width
    right = places[None, :] % width - places[:, None] % width
    near = (down.abs() <= 1) & (right.abs() <= 1)
    taps = (3 * (down + 1) + right + 1).where(near, 0)
    out = []
    for head in range(len(features.q)):
        weights = measures.attention_weights(
            features.q[head], features.k[head], features.normalization
        )
        for channel in range(features.v.shape[-1]):
            both = weights.clone()
            if features.kernels is not None:
                local = features.kernels[head, channel][taps] * near
                both[features.prefix :, features.prefix :] += local
            out.append(both @ features.v[head, :, channel])
    out = torch.stack(out, dim=1)
    if module.lepe is not None:
        out[features.prefix :] += module.lepe.bias
    return module.proj(out)


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        *((name, {}) for name in ARCHS),
        ('InLinePVT', dict(kernel='exp', normalization='divide')),
        ('InLineDeiT', dict(kernel='relu', normalization='softmax')),
        ('InLineSwin', dict(kernel='normalized_relu')),
        ('InLineCSwin', dict(local_residual=False)),
        ('InLineSwin', dict(local_residual=False)),
    ],
)
def test_weights_and_kernels_give_the_blocks_output(name, options):
    torch.manual_seed(0)
    backbone = MODELS.build(dict(type=name, arch=ARCHS[name], **options))
    backbone = backbone.double().eval()
    outputs = {}
    for key, module in backbone.named_modules():
        if key.endswith('.attn'):
            module.register_forward_hook(
                lambda module, _, output, key=key: outputs.update(
                    {key.removesuffix('.attn'): (module, output[0])}
                )
            )
    found, others = collect(backbone, draw(1, 3, 48, 64))
    assert {f.name for f in found} | others.keys() == outputs.keys()
    kinds = {f.name for f in found}
    if name in ('InLineSwin', 'InLineCSwin'):
        assert others.keys() == {
            'stages.2.blocks.1',
            'stages.2.blocks.2',
            'stages.3.blocks.0',
            'stages.3.blocks.1',
        }
    else:
        assert not others
    assert kinds
    with torch.no_grad():
        for features in found:
            module, output = outputs[features.name]
            torch.testing.assert_close(naive_output(module, features), output)


def test_windows_are_named_not_measured():
    backbone = MODELS.build(
        dict(type='InLineSwin', arch=ARCHS['InLineSwin'], window_size=4)
    ).eval()
    found, others = collect(backbone, torch.zeros(1, 3, 64, 64))
    # Of 16, 8 and 4 tokens a side, one window holds the last.
    assert [features.name for features in found] == ['stages.2.blocks.0']
    assert 'windows of 4x4' in others['stages.0.blocks.0']
    assert 'WindowAttention' in others['stages.3.blocks.0']


@pytest.mark.parametrize(
    ('kernel', 'still'), [('identity', False), ('normalized_relu', True)]
)
def test_a_kernel_that_drops_the_norm_drops_doubling(kernel, still):
    torch.manual_seed(0)
    cfg = dict(type='InLineDeiT', arch=ARCHS['InLineDeiT'], kernel=kernel)
    image = draw(1, 3, 64, 64).float()
    with torch.no_grad():
        features = collect(MODELS.build(cfg).eval(), image)
        numbers = blocks.measure(features[0][0], torch.arange(16))
    for method in ('subtract', 'softmax'):
        moved = numbers['injectivity'][method]['doubling']
        assert ((moved < 1e-4) == still).all()


def test_numbers_of_a_block():
    q, k, v = (draw(2, 30, 4, seed=seed) for seed in range(3))
    features = Features(
        'blocks.0',
        q,
        q,
        2 * q,
        k,
        v,
        (5, 6),
        0,
        'subtract',
        draw(2, 4, 9, seed=3),
    )
    rows = torch.tensor([3, 7, 20, 29])
    numbers = blocks.measure(features, rows)
    ranks = numbers['effective_rank']
    scores = q[1, rows] @ k[1].mT / 2
    weights = (scores - scores.mean(1, keepdim=True) + 1) / 30
    values = torch.linalg.svdvals(weights)
    shares = values / values.sum()
    expected = np.exp(-(shares * shares.log()).sum().item())
    assert ranks['attention']['subtract'][1] == pytest.approx(expected)
    out = NAIVE['subtract'](q, k, v).transpose(0, 1).flatten(1)
    channels = v.transpose(0, 1).flatten(1)
    local = naive.naive_local_residual(
        channels[None], features.kernels.flatten(0, 1)[None], (5, 6)
    )[0]
    for key, matrix in (('subtract', out), ('with_local', out + local)):
        values = torch.linalg.svdvals(matrix[rows])
        shares = values / values.sum()
        expected = np.exp(-(shares * shares.log()).sum().item())
        assert ranks['output'][key] == pytest.approx(expected)
    # Division is of what is not negative.
    scores = q[0, rows].relu() @ k[0].relu().mT
    weights = scores / scores.sum(1, keepdim=True)
    expected = loops(weights, rows, (5, 6), 3)
    assert numbers['locality']['divide'][0, 0] == pytest.approx(expected)


def test_averages_leave_out_what_is_not_defined():
    nan = float('nan')
    records = [
        dict(a=np.array([1.0, nan, nan])),
        dict(a=np.array([3, nan, 4])),
    ]
    assert blocks.to_json(blocks.average(records)) == dict(a=[2.0, None, 4.0])

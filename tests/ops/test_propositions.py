r"""The paper's propositions on injectivity, as properties (arXiv 2412.06590).

The weights of a query q over the keys K, N rows of d channels, are what an
attention returns for unit vectors as values. With s = d^-0.5, K_c the centred
keys, and a kernel phi for queries and keys:

- division: w(q) is K phi(q) divided by its sum, so that it depends on the
  direction of phi(q) alone. Where K has rank d, w(p) = w(q) if and only if
  phi(p) = c phi(q) with c other than 0.
- subtraction: w(q) = (s K_c q + 1) / N, so that w(p) - w(q) is
  s K_c (p - q) / N: injective, on what the kernel makes of the queries, if
  and only if K_c has rank d.
- softmax: log w(q) is s K q but for a constant, so that w(p) = w(q) if and
  only if K (p - q) is constant. This needs [K 1] of rank d + 1, which is
  K_c of rank d: the same condition.

It needs d + 1 keys that lie in no hyperplane. Queries that differ along the
null space of K_c are taken for one by both.
"""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inline_mm import ops
from inline_mm.layers.kernels import KERNELS, apply_kernel

# The same examples in every run, and no clock: other work slows a machine.
settings.register_profile(
    'propositions', derandomize=True, deadline=None, max_examples=40
)
PROPERTY = settings(settings.get_profile('propositions'))
ATTENTIONS = {
    'subtract': ops.inline_attention,
    'softmax': ops.softmax_attention,
    'divide': ops.divide_attention,
}
INJECTIVE = ('subtract', 'softmax')
# Distinct weights differ by much more than the rounding of equal ones.
EQUAL = 1e-12
# Entries are quarters: exact, and neither huge nor nearly equal.
ENTRIES = st.integers(-12, 12).map(lambda n: n / 4)
FACTORS = st.sampled_from([0.125, 0.5, 1.5, 3.0, 8.0])


def matrices(rows, columns):
    row = st.lists(ENTRIES, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows).map(
        lambda entries: torch.tensor(entries, dtype=torch.float64)
    )


@st.composite
def queries_and_keys(draw, least=1, most=9):
    """Two queries (2, d), distinct, and keys (N, d); d from 1 to 4."""
    dim = draw(st.integers(1, 4))
    number = draw(st.integers(least, most))
    queries = draw(matrices(2, dim))
    assume(not torch.equal(*queries))
    return queries, draw(matrices(number, dim))


@st.composite
def full_rank(draw):
    """The same, and the keys lie in no hyperplane.

    A simplex is among them, moved and blurred.
    """
    dim = draw(st.integers(1, 4))
    queries = draw(matrices(2, dim))
    assume(not torch.equal(*queries))
    simplex = torch.cat([torch.eye(dim), torch.zeros(1, dim)]).double()
    simplex = 4 * simplex + draw(matrices(1, dim))
    simplex = simplex + draw(matrices(dim + 1, dim)) / 16
    more = draw(matrices(draw(st.integers(0, 4)), dim)).reshape(-1, dim)
    keys = torch.cat([simplex, more])
    assume(smallest(keys - keys.mean(0)) > 0.05)
    return queries, keys


def smallest(matrix):
    """The smallest singular value of (N, d), 0 where N < d."""
    rows, columns = matrix.shape
    if rows < columns:
        return 0.0
    return torch.linalg.svdvals(matrix).min().item()


def weights(name, queries, keys):
    """Attention distributions of queries (M, d) over keys: (M, N)."""
    values = torch.eye(len(keys), dtype=keys.dtype)
    out = ATTENTIONS[name](
        queries[None, None], keys[None, None], values[None, None]
    )
    return out[0, 0]


def denominators(queries, keys):
    """What division divides by, and guards near zero."""
    return queries @ keys.mean(0) * keys.shape[1] ** -0.5


def make_kernel(name, dim):
    """A kernel in float64; A and b of relu(A x + b) are drawn by a seed."""
    torch.manual_seed(dim)
    kernel = KERNELS[name](dim).double().requires_grad_(False)
    if name == 'affine_relu':
        kernel[0].weight += 2 * torch.eye(dim)
    return kernel


@PROPERTY
@given(queries_and_keys())
@pytest.mark.parametrize('name', ATTENTIONS)
def test_weights_sum_to_one(name, drawn):
    queries, keys = drawn
    if name == 'divide':
        assume((denominators(queries, keys).abs() > 1e-3).all())
    sums = weights(name, queries, keys).sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-9)


@PROPERTY
@given(queries_and_keys(), st.data())
@pytest.mark.parametrize('name', INJECTIVE)
def test_a_constant_added_to_all_keys_changes_nothing(name, drawn, data):
    queries, keys = drawn
    shift = data.draw(matrices(1, keys.shape[1]))
    torch.testing.assert_close(
        weights(name, queries, keys + shift),
        weights(name, queries, keys),
        rtol=0,
        atol=EQUAL,
    )


def test_division_sees_a_constant_added_to_all_keys():
    queries = torch.tensor([[1.0, 2.0]]).double()
    keys = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).double()
    before, after = (weights('divide', queries, keys + c) for c in (0, 1))
    assert (before - after).abs().max() > 0.05


# For each kernel, from a query and a factor c a query whose features are the
# old ones times a number.
SAME_DIRECTION = {
    'identity': lambda q, c, _: c * q,
    'relu': lambda q, c, _: c * q,
    'leaky_relu': lambda q, c, _: c * q,
    # exp(0.2 (q + c)) = exp(0.2 c) exp(0.2 q)
    'exp': lambda q, c, _: q + c,
    # A p + b = c (A q + b)
    'affine_relu': lambda q, c, kernel: (
        c * q + (c - 1) * torch.linalg.solve(kernel[0].weight, kernel[0].bias)
    ),
    'normalized_relu': lambda q, c, _: c * q,
}


@PROPERTY
@given(queries_and_keys(), FACTORS)
@pytest.mark.parametrize('name', KERNELS)
def test_division_collides_on_scaled_or_shifted_queries(name, drawn, factor):
    """Scaled ones by positively homogeneous kernels, shifted ones by exp,
    both at once by relu(A x + b).
    """
    queries, keys = drawn
    kernel = make_kernel(name, keys.shape[1])
    other = SAME_DIRECTION[name](queries, factor, kernel)
    assert not torch.equal(queries, other)
    q, k = apply_kernel(kernel, torch.cat([queries, other]), keys)
    assume((denominators(q, k).abs() > 1e-3).all())
    left, right = weights('divide', q, k).chunk(2)
    torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


@PROPERTY
@given(queries_and_keys(), FACTORS)
def test_division_collides_on_opposite_queries(drawn, factor):
    """The identity alone: c may be negative."""
    queries, keys = drawn
    assume((denominators(queries, keys).abs() > 1e-3).all())
    torch.testing.assert_close(
        weights('divide', queries, keys),
        weights('divide', -factor * queries, keys),
        rtol=1e-9,
        atol=1e-9,
    )


@PROPERTY
@given(full_rank())
def test_division_tells_directions_apart_and_nothing_else(drawn):
    """The converse: of keys of rank d only collinear queries collide."""
    queries, keys = drawn
    totals = denominators(queries, keys)
    assume((totals.abs() > 1e-3).all())
    collinear = smallest(queries.T) < 1e-9
    left, right = weights('divide', queries, keys)
    if collinear:
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
        return
    scaled = queries / totals[:, None]
    distance = (scaled[0] - scaled[1]).norm()
    bound = smallest(keys) * keys.shape[1] ** -0.5 / len(keys) * distance
    assert bound > EQUAL
    assert (left - right).norm() >= bound * (1 - 1e-6)


@PROPERTY
@given(full_rank())
def test_subtraction_is_injective_with_a_bound(drawn):
    queries, keys = drawn
    number, dim = keys.shape
    centred = keys - keys.mean(0)
    step = dim**-0.5 / number
    distance = (queries[0] - queries[1]).norm()
    left, right = weights('subtract', queries, keys)
    difference = (left - right).norm()
    bound = smallest(centred) * step * distance
    assert bound > 1e-4
    assert difference >= bound * (1 - 1e-9)
    most = torch.linalg.matrix_norm(centred, 2) * step * distance
    assert difference <= most * (1 + 1e-9)


@PROPERTY
@given(full_rank())
def test_softmax_is_injective_with_a_bound_on_logarithms(drawn):
    """Of keys with a column of ones; they have rank d + 1 where the centred
    ones have rank d.
    """
    queries, keys = drawn
    number, dim = keys.shape
    ones = torch.ones(number, 1, dtype=keys.dtype)
    assert torch.linalg.matrix_rank(torch.cat([keys, ones], 1)) == dim + 1
    left, right = weights('softmax', queries, keys)
    assert (left - right).norm() > 1e3 * EQUAL
    logs = left.log() - right.log()
    centred = keys - keys.mean(0)
    distance = (queries[0] - queries[1]).norm()
    bound = smallest(centred) * dim**-0.5 * distance
    assert (logs - logs.mean()).norm() >= bound * (1 - 1e-6)


@PROPERTY
@given(full_rank(), FACTORS)
@pytest.mark.parametrize('name', INJECTIVE)
def test_what_division_confuses_is_told_apart(name, drawn, factor):
    queries, keys = drawn
    queries = queries[queries.any(1)]
    difference = weights(name, queries, keys) - weights(
        name, factor * queries, keys
    )
    assert (difference.norm(dim=-1) > 1e3 * EQUAL).all()


# Keys whose centred rows don't span all d channels.
@st.composite
def too_few(draw):
    """N - 1 < d."""
    dim = draw(st.integers(1, 5))
    return draw(matrices(draw(st.integers(1, dim)), dim))


@st.composite
def identical(draw):
    keys = draw(matrices(1, draw(st.integers(1, 5))))
    return keys.expand(draw(st.integers(1, 9)), -1)


@st.composite
def in_a_hyperplane(draw):
    """More keys than channels, in an affine subspace of lower dimension."""
    dim = draw(st.integers(2, 5))
    inner = draw(st.integers(1, dim - 1))
    inside = draw(matrices(draw(st.integers(dim + 1, 9)), inner))
    return inside @ draw(matrices(inner, dim)) + draw(matrices(1, dim))


@PROPERTY
@given(st.data())
@pytest.mark.parametrize('limit', [too_few, identical, in_a_hyperplane])
@pytest.mark.parametrize('name', INJECTIVE)
def test_queries_collide_where_the_rank_fails(name, limit, data):
    """Those that differ along the null space of the centred keys."""
    keys = data.draw(limit())
    dim = keys.shape[1]
    query = data.draw(matrices(1, dim))
    _, values, rows = torch.linalg.svd(keys - keys.mean(0))
    rank = int((values > 1e-9).sum())
    assert rank < dim
    null = rows[rank:].sum(0) * data.draw(FACTORS)
    other = query + null
    assert (query - other).norm() > 0.1
    left, right = weights(name, torch.cat([query, other]), keys)
    torch.testing.assert_close(left, right, rtol=0, atol=1e-11)


@PROPERTY
@given(full_rank(), FACTORS)
def test_non_injective_softmax_collides(drawn, factor):
    """On queries of one direction, and where no positive channel differs."""
    queries, keys = drawn
    kernel = make_kernel('normalized_relu', keys.shape[1])
    negative = torch.where(queries < 0, factor * queries, queries)
    q, k = apply_kernel(
        kernel, torch.cat([queries, factor * queries, negative]), keys
    )
    assert torch.equal(k, keys)
    same, scaled, moved = weights('softmax', q, k).chunk(3)
    torch.testing.assert_close(scaled, same, rtol=0, atol=EQUAL)
    torch.testing.assert_close(moved, same, rtol=0, atol=EQUAL)

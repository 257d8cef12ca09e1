"""What is measured of the attention of one head: pure functions.

Rows are those of some queries, sampled on large maps; keys are always all.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..ops.attention import DIVIDE_EPS

# Normalisations that are compared, as `InLineAttention` names them.
METHODS = ('subtract', 'divide', 'softmax')
# Neighbourhoods of 3x3, 5x5 and 7x7 tokens.
RADII = (1, 2, 3)
SIDES = tuple(2 * radius + 1 for radius in RADII)

# Two queries count as distinct from half of their median distance on, two
# distributions as equal up to a twentieth of theirs.
APART = 0.5
EQUAL = 0.05
# Distributions that are all closer than this, relative to their norm, differ
# by rounding: their median distance is no scale.
ROUNDING = 1e-6


def attention_weights(q: Tensor, k: Tensor, method: str) -> Tensor:
    """The weights of some queries, in float64.

    Args:
        q (Tensor): queries after the kernel, (Q, head_dim).
        k (Tensor): keys after the kernel, (N, head_dim).
        method (str): one of `METHODS`; 'divide' is guarded as in
            `inline_mm.ops.divide_attention`, so that a query whose products
            sum to zero may have weights that don't sum to one.

    Returns:
        Tensor: (Q, N). Those of 'subtract' may be negative.
    """
    num_tokens, head_dim = k.shape
    scores = q.double() @ k.double().mT * head_dim**-0.5
    if method == 'softmax':
        return scores.softmax(-1)
    if method == 'subtract':
        return (scores - scores.mean(-1, keepdim=True) + 1) / num_tokens
    total = scores.mean(-1, keepdim=True)
    guard = torch.where(total < 0, -DIVIDE_EPS, DIVIDE_EPS)
    total = torch.where(total.abs() < DIVIDE_EPS, guard, total)
    return scores / num_tokens / total


def effective_rank(gram: Tensor) -> float:
    """exp of the entropy of the normalised singular values of a matrix.

    n for n equal singular values, 1 for a matrix of rank one.

    Args:
        gram (Tensor): A A^T or A^T A of the matrix A, float64.

    Returns:
        float: the effective rank; nan for a matrix of zeros.

    Source: Roy and Vetterli, The effective rank: a measure of effective
    dimensionality, EUSIPCO 2007.
    """
    values = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt()
    total = values.sum()
    if total == 0:
        return float('nan')
    shares = values / total
    return torch.special.entr(shares).sum().exp().item()


def centre_rows(gram: Tensor, sums: Tensor, num_tokens: int) -> Tensor:
    """Products of rows from which their means have been taken.

    What is left of weights is how they differ from equal ones, 1 / N, which
    all queries share and which hides the rest where attention is flat.

    Args:
        gram (Tensor): products of the rows, (Q, Q), float64.
        sums (Tensor): sum of each row, (Q,).
        num_tokens (int): length of a row.

    Returns:
        Tensor: (Q, Q).
    """
    return gram - torch.outer(sums, sums) / num_tokens


def pair_distances(gram: Tensor) -> Tensor:
    """Euclidean distances of all pairs of rows, from their products.

    Args:
        gram (Tensor): products of the rows, (Q, Q), float64.

    Returns:
        Tensor: (Q (Q - 1) / 2,), pairs (0, 1), (0, 2), ... in order.
    """
    first, second = torch.triu_indices(
        *gram.shape, offset=1, device=gram.device
    )
    norms = gram.diagonal()
    squares = norms[first] + norms[second] - 2 * gram[first, second]
    return squares.clamp(min=0).sqrt()


class Injectivity(NamedTuple):
    """How well distinct queries are told apart.

    Args:
        collision_rate (float): share of the pairs of distinct queries whose
            distributions are equal; nan without such pairs.
        lowest_slope (float): the smallest ratio, among these pairs, of the
            distance of the distributions to that of the queries, both in
            medians; nan without such pairs.
        relative_spread (float): median distance of the distributions, in
            norms of a distribution.
        doubling (float): median distance of the distributions of a query and
            of its double, in medians of the distances of different queries'.
        queries (Tensor): distances of the queries, in medians.
        distributions (Tensor): distances of their distributions, in medians.
    """

    collision_rate: float
    lowest_slope: float
    relative_spread: float
    doubling: float
    queries: Tensor
    distributions: Tensor


def injectivity(
    queries: Tensor, gram: Tensor, doubling: Tensor
) -> Injectivity | None:
    """Compares distances of queries with those of their distributions.

    Both are taken relative to their median over the pairs, so that neither
    the scale of the features nor the number of tokens matters.

    Args:
        queries (Tensor): the queries, (Q, head_dim).
        gram (Tensor): products of the weights of these queries, (Q, Q).
        doubling (Tensor): distances of the weights of each query and of its
            double, (Q,).

    Returns:
        Injectivity | None: the measures; None for fewer than two queries.
    """
    if len(queries) < 2:
        return None
    centred = queries.double() - queries.double().mean(0)
    apart = pair_distances(centred @ centred.mT)
    between = pair_distances(gram)
    norm = gram.diagonal().mean().sqrt()
    spread = between.median()
    tiny = torch.finfo(torch.float64).tiny
    apart = apart / apart.median().clamp(min=tiny)
    floor = (ROUNDING * norm).clamp(min=tiny)
    scale = torch.maximum(spread, floor)
    between = between / scale
    distinct = apart >= APART
    nan = float('nan')
    rate = slope = nan
    if distinct.any():
        rate = (between[distinct] <= EQUAL).double().mean().item()
        slope = (between[distinct] / apart[distinct]).min().item()
    relative = (spread / norm).item() if norm > 0 else nan
    moved = (doubling.median() / scale).item()
    return Injectivity(rate, slope, relative, moved, apart, between)


class Neighbourhood(NamedTuple):
    """The tokens around each query, up to the largest of `RADII`.

    Args:
        index (Tensor): their places among the keys, (Q, 49).
        inside (Tensor): whether they are on the grid, (Q, 49).
        radius (Tensor): their distance from the query along the longer axis,
            (49,), row by row; those up to 1 are in the order of a 3x3 kernel.
    """

    index: Tensor
    inside: Tensor
    radius: Tensor

    @classmethod
    def of(
        cls, rows: Tensor, hw_shape: tuple[int, int], prefix: int
    ) -> 'Neighbourhood':
        """Around the tokens `rows` of a grid, (Q,), counted on the grid."""
        height, width = hw_shape
        steps = torch.arange(-RADII[-1], RADII[-1] + 1, device=rows.device)
        down, right = torch.meshgrid(steps, steps, indexing='ij')
        down, right = down.flatten(), right.flatten()
        y = (rows // width)[:, None] + down
        x = (rows % width)[:, None] + right
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        index = (y * width + x).clamp(0, height * width - 1) + prefix
        return cls(index, inside, torch.maximum(down.abs(), right.abs()))

    def uniform(self, num_tokens: int) -> Tensor:
        """Share of the neighbourhoods if all weights were equal, (3,)."""
        counts = [
            self.inside[:, self.radius <= radius].sum(1) for radius in RADII
        ]
        return torch.stack(counts).double().mean(1) / num_tokens

    def shares(self, weights: Tensor) -> Tensor:
        """Share of the absolute weights inside, mean over the queries.

        Args:
            weights (Tensor): (Q, N), float64. Queries without any weight are
                left out.

        Returns:
            Tensor: (3,); nan if no query has weight.
        """
        near = weights.gather(1, self.index).abs() * self.inside
        total = weights.abs().sum(1)
        inside = self._by_radius(near)
        return (inside / total).nanmean(1)

    def shares_with_local(self, weights: Tensor, kernels: Tensor) -> Tensor:
        """The same with the 3x3 kernels of the channels added.

        A channel's output is a sum over tokens of (weight + tap of its
        kernel) times value: these sums are its weights. Shares are taken for
        each channel; the mean is over queries and channels.

        Args:
            weights (Tensor): (Q, N), float64.
            kernels (Tensor): (head_dim, 9).

        Returns:
            Tensor: (3,); nan if no query has weight.
        """
        near = weights.gather(1, self.index) * self.inside
        core = self.radius <= 1
        both = near[:, None, core] + kernels.double()
        both = (both.abs() * self.inside[:, None, core]).sum(-1)
        # Only in the 3x3 tokens do the weights differ: (Q, channels).
        more = both - near[:, core].abs().sum(1, keepdim=True)
        total = weights.abs().sum(1, keepdim=True) + more
        inside = self._by_radius(near.abs())[..., None] + more
        return (inside / total).flatten(1).nanmean(1)

    def _by_radius(self, near: Tensor) -> Tensor:
        return torch.stack(
            [near[:, self.radius <= radius].sum(1) for radius in RADII]
        )

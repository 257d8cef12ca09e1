"""The numbers of a block, for one image and averaged over images."""

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..ops import local_residual
from .features import Features
from .measures import (
    METHODS,
    Injectivity,
    Neighbourhood,
    attention_weights,
    centre_rows,
    effective_rank,
    injectivity,
)

# Distances in medians that are drawn, in bins of equal ratio: of queries, and
# of their attention.
BINS = 60
QUERY_BINS = np.geomspace(0.03, 4, BINS + 1)
ATTENTION_BINS = np.geomspace(0.003, 8, BINS + 1)
MEASURES = ('collision_rate', 'lowest_slope', 'relative_spread', 'doubling')


@dataclass
class Pairs:
    """Pairs of queries by their distances, for a figure.

    Args:
        counts (np.ndarray): by distance of the queries, then of their
            attention, both in medians, (BINS, BINS).
        lowest (np.ndarray): by distance of the queries, the smallest distance
            of attention, (BINS,); inf without pairs.
    """

    counts: np.ndarray = field(default_factory=lambda: np.zeros((BINS, BINS)))
    lowest: np.ndarray = field(default_factory=lambda: np.full(BINS, np.inf))

    def add(self, found: Injectivity) -> None:
        """Takes the pairs of a head in; attention out of range is at it."""
        queries = found.queries.cpu().numpy()
        attention = found.distributions.cpu().numpy()
        drawn = (queries >= QUERY_BINS[0]) & (queries < QUERY_BINS[-1])
        queries, attention = queries[drawn], attention[drawn]
        columns = np.digitize(queries, QUERY_BINS) - 1
        rows = np.digitize(attention, ATTENTION_BINS) - 1
        np.add.at(self.counts, (columns, rows.clip(0, BINS - 1)), 1)
        np.minimum.at(self.lowest, columns, attention)


def sample_rows(hw_shape: tuple[int, int], number: int, seed: int) -> Tensor:
    """Tokens of a grid, in order: all of them or as many as asked for."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(math.prod(hw_shape), generator=generator)
    return order[:number].sort().values


def kernelled(features: Features, method: str) -> list[Tensor]:
    """Queries, doubled queries and keys as a method takes them.

    A block's kernel applies to all. Division needs products that aren't
    negative, so that where the block doesn't divide itself a relu is added.

    Returns:
        list[Tensor]: three of (heads, N, head_dim).
    """
    found = [features.q, features.doubled, features.k]
    if method == 'divide' and features.normalization != 'divide':
        return [tensor.relu() for tensor in found]
    return found


def measure(
    features: Features,
    rows: Tensor,
    pairs: dict[str, Pairs] | None = None,
) -> dict:
    """All numbers of a block for one image.

    Args:
        features (Features): what it works on.
        rows (Tensor): the tokens of the grid whose attention is looked at.
        pairs (dict[str, Pairs] | None): by method, takes the distances.
            Defaults to None: they are not kept.

    Returns:
        dict: arrays by head (of 'output': numbers), nested as in the JSON.
    """
    rows = rows.to(features.q.device)
    around = Neighbourhood.of(rows, features.hw_shape, features.prefix)
    rows = rows + features.prefix
    heads, num_tokens, head_dim = features.v.shape
    numbers = dict(
        tokens=np.array(num_tokens),
        injectivity={},
        locality=dict(
            uniform=around.uniform(num_tokens).cpu().numpy(),
        ),
        effective_rank=dict(
            attention_limit=np.array(min(len(rows), num_tokens)),
            output_limit=np.array(min(len(rows), heads * head_dim)),
            attention={},
            attention_centred={},
            output={},
        ),
    )
    for method in METHODS:
        q, doubled, k = kernelled(features, method)
        kernels = None
        if method == features.normalization:
            kernels = features.kernels
        found = [
            _measure_head(
                features.queries[head, rows],
                attention_weights(q[head, rows], k[head], method),
                attention_weights(doubled[head, rows], k[head], method),
                features.v[head],
                around,
                None if kernels is None else kernels[head],
                None if pairs is None else pairs[method],
            )
            for head in range(heads)
        ]
        numbers['injectivity'][method] = {
            key: np.array([head[key] for head in found]) for key in MEASURES
        }
        ranks = numbers['effective_rank']
        for key in ('attention', 'attention_centred'):
            ranks[key][method] = np.array([head[key] for head in found])
        numbers['locality'][method] = np.array([h['shares'] for h in found])
        # The heads' channels side by side, (Q, C).
        out = torch.cat([head['output'] for head in found], dim=1)
        ranks['output'][method] = _rank(out)
        if kernels is not None:
            numbers['locality']['with_local'] = np.array(
                [head['with_local'] for head in found]
            )
            ranks['output']['with_local'] = _rank(
                out + local_term(features)[rows]
            )
    return numbers


def _measure_head(
    queries: Tensor,
    weights: Tensor,
    doubled: Tensor,
    values: Tensor,
    around: Neighbourhood,
    kernels: Tensor | None,
    pairs: Pairs | None,
) -> dict:
    """Numbers of a head; `doubled`, the weights of doubled queries, changes.

    Shapes: queries (Q, d); weights, doubled (Q, N); values (N, d); kernels
    (d, 9).
    """
    gram = weights @ weights.mT
    centred = centre_rows(gram, weights.sum(1), len(values))
    found = injectivity(queries, gram, doubled.sub_(weights).norm(dim=1))
    numbers = dict.fromkeys(MEASURES, np.nan)
    if found is not None:
        if pairs is not None:
            pairs.add(found)
        numbers = {key: getattr(found, key) for key in numbers}
    numbers.update(
        attention=effective_rank(gram),
        attention_centred=effective_rank(centred),
        shares=around.shares(weights).cpu().numpy(),
        output=weights @ values.double(),
    )
    if kernels is not None:
        shares = around.shares_with_local(weights, kernels)
        numbers['with_local'] = shares.cpu().numpy()
    return numbers


def local_term(features: Features) -> Tensor:
    """What the local terms add to the heads' output, (N, C), no bias."""
    values = features.v.transpose(0, 1).flatten(1)[features.prefix :]
    local = local_residual(
        values[None], features.kernels.flatten(0, 1)[None], features.hw_shape
    )[0]
    return F.pad(local, (0, 0, features.prefix, 0))


def _rank(matrix: Tensor) -> np.ndarray:
    """Effective rank of (rows, columns), by its smaller Gram matrix."""
    wide = matrix.shape[0] < matrix.shape[1]
    gram = matrix @ matrix.mT if wide else matrix.mT @ matrix
    return np.array(effective_rank(gram))


def average(records: list) -> dict | np.ndarray:
    """Mean over images of nested arrays; what is nan is left out."""
    if isinstance(records[0], dict):
        return {
            key: average([record[key] for record in records])
            for key in records[0]
        }
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # nan alone
        return np.nanmean(np.stack([np.asarray(r) for r in records]), axis=0)


def to_json(value):
    """Nested arrays as JSON's types: numbers are finite, or null."""
    if isinstance(value, dict):
        return {key: to_json(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [to_json(entry) for entry in value]
    return value if math.isfinite(value) else None

"""Learning of a network with a latent class: naive Bayes, or a tree of the features.

Some values are hidden from the fit. Their log-probability is used to select the number of latent classes, and to decide
whether the features form a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tanlearn._typing import Codes, FloatArray, missing_code
from tanlearn.baselines import ChowLiu
from tanlearn.density.latent_classes import CodedRows, fit_latent_classes
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.log_joint import log_evidence
from tanlearn.structures.knowledge import Knowledge
from tanlearn.structures.structures import Structure

__all__ = ["LatentCandidate", "learn_network"]

#: Numbers of latent classes that are compared, and minimum number of rows per latent class.
_SIZES, _ROWS_PER_CLASS = (1, 2, 4, 8, 16, 32), 8
#: Number of successive sizes without improvement after which the comparison ends.
_PATIENCE = 2
#: Fraction of the values that are hidden, and maximum number of rows for the selection.
_HIDDEN, _MOST_ROWS = 0.1, 5_000
#: Maximum number of times that the tree is learned again from the posterior of the latent class.
_ROUNDS = 3
#: An edge is left out of the tree if its CPT has more entries than the first number, and more entries per row than the
#: second number, because almost all of these entries would have no rows. With two columns of 800 names and 800 rows, a
#: fit took minutes.
_MOST_ENTRIES, _MOST_PER_ROW = 2**17, 10


class LatentCandidate(NamedTuple):
    """Network that was compared in the selection."""

    n_components: int  # latent classes
    has_tree: bool  # whether features have other features as parents
    score: float  # mean log-probability of a hidden value, in nats


def learn_network(
    rows: CodedRows, n_components: Any, rng: np.random.Generator, n_jobs: int | None = None
) -> tuple[BayesNet, list[LatentCandidate]]:
    """Return the fitted network, and the candidates of the selection.

    ``n_components`` is the number of latent classes of a network with a tree, or "auto".
    """
    seed = int(rng.integers(2**62))
    found: list[LatentCandidate] = []
    size, has_tree = n_components, True
    if n_components == "auto":
        found = _compare(rows, seed, n_jobs)
        size, has_tree, _ = max(found, key=lambda candidate: candidate.score)
    return list(_networks(rows, size, seed, n_jobs, has_tree=has_tree))[-1], found


def _compare(rows: CodedRows, seed: int, n_jobs: int | None) -> list[LatentCandidate]:
    """Fit networks of increasing size to rows with hidden values, and score the hidden values."""
    rng = np.random.default_rng((seed, 0))
    codes = rows.codes
    if codes.shape[1] > _MOST_ROWS:
        chosen = np.sort(rng.choice(codes.shape[1], _MOST_ROWS, replace=False))
        codes = np.ascontiguousarray(codes[:, chosen])
        rows = rows._replace(weights=None if rows.weights is None else rows.weights[chosen])
    missing = missing_code(codes.dtype)
    hidden = (rng.random(codes.shape) < _HIDDEN) & (codes != missing)
    weights = np.ones(codes.shape[1]) if rows.weights is None else rows.weights
    n_hidden = max(float((weights * hidden.sum(axis=0)).sum()), 1.0)
    shown: Codes = np.where(hidden, codes.dtype.type(missing), codes)
    found: list[LatentCandidate] = []
    best, n_worse = -np.inf, 0
    for size in _SIZES:
        if size > 1 and (size * _ROWS_PER_CLASS > codes.shape[1] or n_worse == _PATIENCE):
            break
        own = []
        for has_tree, network in enumerate(_networks(rows._replace(codes=shown), size, seed, n_jobs)):
            logs = [log_evidence(network.log_joint(c, n_jobs=n_jobs)) for c in (codes, shown)]
            own.append(LatentCandidate(size, bool(has_tree), float((weights * (logs[0] - logs[1])).sum() / n_hidden)))
        found += own
        score = max(candidate.score for candidate in own)
        n_worse = 0 if score > best else n_worse + 1
        best = max(best, score)
    return found


def _networks(
    rows: CodedRows, size: int, seed: int, n_jobs: int | None, *, has_tree: bool = True
) -> Iterator[BayesNet]:
    """Yield a network without edges between features and, if ``has_tree`` is true, a network with a tree."""
    n_features, n_samples = rows.codes.shape
    start: FloatArray = np.ones((n_samples, 1))
    if size > 1:
        start = np.random.default_rng((seed, size)).dirichlet(np.ones(size), n_samples)
    structure = Structure.naive_bayes(n_features)
    tables, posterior = fit_latent_classes(structure, rows, start, n_jobs)
    yield BayesNet(structure, tables)
    if not has_tree:
        return
    for _ in range(_ROUNDS):
        found = _tree(rows, posterior, n_jobs)
        if found == structure:
            break
        structure = found
        tables, posterior = fit_latent_classes(structure, rows, posterior, n_jobs)
    yield BayesNet(structure, tables)


def _tree(rows: CodedRows, posterior: FloatArray, n_jobs: int | None) -> Structure:
    """Return the maximum-likelihood tree. Each row is counted in all classes, weighted by the posterior."""
    n_samples, size = posterior.shape
    codes = rows.codes if size == 1 else np.ascontiguousarray(np.tile(rows.codes, size))
    weights = None if size == 1 else posterior.T.ravel()
    if rows.weights is not None:
        weights = np.tile(rows.weights, size) * posterior.T.ravel()
    data = EncodedData(codes, rows.n_states, np.repeat(np.arange(size), n_samples), size, weights, names=rows.names)
    n_entries = np.multiply.outer(rows.n_states, rows.n_states).astype(np.float64) * size
    is_large = n_entries > max(_MOST_ENTRIES, _MOST_PER_ROW * n_samples)
    np.fill_diagonal(is_large, val=False)
    forbidden = [(int(parent), int(child)) for parent, child in np.argwhere(is_large)]
    knowledge = Knowledge(forbidden=forbidden) if forbidden else None
    return ChowLiu(knowledge=knowledge, n_jobs=n_jobs).learn(data, np.random.default_rng(0))

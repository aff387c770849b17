"""Rows of four features that may miss values, families of them, and their kernels as tests call these."""

import numpy as np
from support.tries import grow

from tanlearn import EncodedData, Structure
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.kernels import context_counts as kernels

MISSING = 255
N_STATES = np.array([3, 2, 4, 2])
N_CLASSES = 3
STRUCTURE = Structure([[-1] * 3, [0, -1, -1], [1, 0, -1], [2, 0, 1]])


def random_rows(seed=0, n=40, missing=0.2):
    """Return rows that miss values (-1), their codes and classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, N_STATES, (n, 4))
    X[rng.random(X.shape) < missing] = -1
    return X, np.where(X < 0, MISSING, X).T.astype(np.uint8).copy(), rng.integers(0, N_CLASSES, n)


def columns_of(codes, y, child, parents):
    """Return the columns of a family, and numbers of values."""
    rows, columns = np.empty(len(y), np.intp), np.empty((len(parents) + 2, len(y)), np.uint16)
    n = kernels.family_columns(codes, y, child, np.array(parents, np.intp), N_STATES, MISSING, rows, columns)
    return rows[:n], columns[:, :n].copy(), np.array([*N_STATES[parents], N_STATES[child], N_CLASSES])


def sort(columns, n_values):
    """Return the order of columns, and by how many values each equals the one before."""
    order, buffer = np.empty((2, columns.shape[1]), np.intp)
    shared = np.empty(columns.shape[1], np.uint16)
    kernels.sort_columns(columns, n_values, order, buffer, np.empty(n_values.max() + 2, np.intp))
    kernels.mark_shared(columns, order, shared)
    return order, shared


def trie_of(columns, n_values):
    """Return the trie of a family, with entries only for pairs that occur, grown from its sorted distinct columns."""
    k, (order, shared) = len(columns) - 2, sort(columns, n_values)
    values, counts = np.empty_like(columns), np.empty(len(order), np.int64)
    n = kernels.sum_equal(columns, order, shared, np.ones(len(order), np.int64), values, counts)
    rows = values[:, :n].copy(), n_values, values[-1, :n].astype(np.intp), N_CLASSES, counts[:n]
    return grow(*rows, np.array([k]), np.arange(k)[np.newaxis], is_full=False)


def table(n=200, missing=0.2, weights=None, seed=0):
    """Return random rows, that may miss values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, N_STATES, (n, 4))
    X[rng.random(X.shape) < missing] = -1
    weight = {None: None, "integer": rng.integers(0, 4, n), "real": rng.uniform(0, 2, n)}[weights]
    y = rng.integers(0, N_CLASSES, n)
    return EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=N_CLASSES, sample_weight=weight)


def count(data, n_jobs=None):
    """Return the counts of rows."""
    return ContextCounts(STRUCTURE.parents, data.n_states, data.n_classes).update(data, n_jobs=n_jobs)

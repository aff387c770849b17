"""Rows, and networks whose CPTs are sums of columns, for tests of both."""

import numpy as np

from tanlearn import EncodedData, Structure
from tanlearn.models.term_tables import TermColumn, TermTables
from tanlearn.structures.table_layout import TableLayout

#: Features with many and few ordered values, a single value, two values, and some and many categories.
N_STATES = [20, 3, 1, 2, 5, 40]
IS_ORDERED = [True, True, True, True, False, False]
#: Features whose last value means missing: one of them, and all of them.
ONE_WITH_MISSING = [True] + [False] * 5
ALL_WITH_MISSING = [True, True, False, True, True, True]


def random_rows(n_samples, n_classes=2, *, missing=0.0, weights=None, seed=0, features=None, has_missing=None):
    """Return rows as lists with -1 for missing values, classes, weights, and the encoded data."""
    rng = np.random.default_rng(seed)
    chosen = list(range(len(N_STATES))) if features is None else features
    n_states, ordered = np.array(N_STATES)[chosen], np.array(IS_ORDERED)[chosen]
    X = np.floor(rng.random((n_samples, len(chosen))) ** 1.5 * n_states).astype(int)
    X[rng.random(X.shape) < missing] = -1
    y = rng.permutation(np.arange(n_samples) % n_classes)
    weight = np.ones(n_samples) if weights is None else weights(rng, n_samples)
    masks = {"is_ordered": ordered, "has_missing_category": has_missing}
    data = EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weight, **masks)
    return X.tolist(), y.tolist(), weight.tolist(), data


def random_network(parents, n_states, n_classes, *, seed=0, spread=1.0, is_normalized=False):
    """Return CPTs of random columns, also of triples, their structure, and the columns as plain lists."""
    rng = np.random.default_rng(seed)
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, np.array(n_states, np.intp), n_classes)
    columns, values, plain = [], [], []
    families = [(i,) for i in range(len(n_states))]
    parents_of = [[j for j in row if j >= 0] for row in structure.parents.tolist()]
    families += [(i, j) for i, row in enumerate(parents_of) for j in row]
    families += [(i, *row[:2]) for i, row in enumerate(parents_of) if len(row) > 1]
    for features in families:
        is_joint = len(features) > 1
        sizes = [min(n_states[i], 2 + int(rng.integers(2))) if is_joint else n_states[i] for i in features]
        groups = [
            rng.permutation(np.append(np.arange(size), rng.integers(0, size, n_states[i] - size)))
            if is_joint
            else np.arange(size)
            for i, size in zip(features, sizes, strict=True)
        ]
        cells = rng.normal(0, spread, (*sizes, n_classes))
        columns.append(TermColumn(features, tuple(groups), tuple(sizes)))
        values.append(cells.reshape(-1, n_classes))
        plain.append((features, [one.tolist() for one in groups], cells.tolist()))
    prior = rng.normal(size=n_classes)
    return TermTables(layout, columns, values, prior, is_normalized=is_normalized), structure, plain


def as_plain(tables):
    """Return the columns of CPTs as plain lists: features, groups and cells."""
    return [
        (column.features, [one.tolist() for one in column.groups], cells.reshape(*column.n_groups, -1).tolist())
        for column, cells in zip(tables.columns, tables.values, strict=True)
    ]


def as_codes(X):
    """Return feature-major codes of rows with -1 for missing values."""
    X = np.array(X)
    return np.ascontiguousarray(np.where(X < 0, 255, X).T.astype(np.uint8))

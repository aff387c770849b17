"""Counts of the CPT entries of one structure."""

import numpy as np

from tanlearn import EncodedData, Structure
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.structures.table_layout import TableLayout

TREE = Structure([-1, 0, 1])


def rows(n=90, seed=0, n_states=3):
    """Return rows with gaps."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, n_states, (n, 3))
    codes[0] = n_states - 1
    return EncodedData.from_codes(codes, np.append(rng.integers(0, 2, n - 1), 1), sample_weight=rng.integers(0, 3, n))


def families(data, structure=TREE):
    return FamilyCounts(TableLayout.of_parents(structure.parents, data.n_states, data.n_classes))


def test_cells_are_what_loops_count():
    data = rows()
    counts = families(data).update(data)
    expected = [np.zeros(2), np.zeros((3, 2)), np.zeros((3, 3, 2)), np.zeros((3, 3, 2))]
    for (a, b, c), y, weight in zip(data.codes.T.tolist(), data.y.tolist(), data.weights.tolist(), strict=True):
        expected[0][y] += weight
        if a < 3:
            expected[1][a, y] += weight
        if a < 3 and b < 3:
            expected[2][b, a, y] += weight
        if b < 3 and c < 3:
            expected[3][c, b, y] += weight
    assert counts.cells.tolist() == np.concatenate([table.ravel() for table in expected]).tolist()
    assert counts.cells.dtype == np.int64

"""Counts of families, and what all kinds of counts share: parts add up, none is none, others are refused."""

import numpy as np
import pytest

from tanlearn import CountState, EncodedData, Structure
from tanlearn.baselines.row_counts import RowCounts
from tanlearn.network.contexts import ContextCounts
from tanlearn.network.family_counts import FamilyCounts
from tanlearn.network.table_layout import TableLayout

TREE = Structure([-1, 0, 1])


def rows(n=90, seed=0, n_states=3):
    """Return rows with gaps."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, n_states, (n, 3))
    codes[0] = n_states - 1
    return EncodedData.from_codes(codes, np.append(rng.integers(0, 2, n - 1), 1), sample_weight=rng.integers(0, 3, n))


def families(data, structure=TREE):
    return FamilyCounts(TableLayout.of_parents(structure.parents, data.n_states, data.n_classes))


KINDS = {
    "pairs": lambda data: CountState(data.n_states, data.n_classes),
    "families": families,
    "contexts": lambda data: ContextCounts(TREE.parents, data.n_states, data.n_classes),
    "rows": lambda data: RowCounts(data.n_states, data.n_classes),
}
every_kind = pytest.mark.parametrize("new", KINDS.values(), ids=KINDS)


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


@every_kind
def test_parts_add_up_to_the_whole(new):
    data = rows()
    whole = new(data).update(data)
    parts = [new(data).update(data.take(part)) for part in (np.arange(70, 90), np.arange(0), np.arange(70))]
    total = parts[0].merge(parts[1]).merge(parts[2])
    assert total == whole
    assert parts[2] == new(data).update(data.take(np.arange(70))), "what is added stays as it is"
    np.testing.assert_array_equal(whole.class_counts, np.bincount(data.y, data.weights))
    np.testing.assert_array_equal(whole.n_states, data.n_states)
    assert whole.n_classes == 2
    assert whole.empty() == new(data)
    assert whole.empty() != whole
    assert whole == new(data).update(data), "empty leaves it as it is"


@every_kind
def test_others_are_refused_and_nothing_is_changed(new):
    data, other = rows(), rows(n_states=4)
    whole = new(data).update(data)
    with pytest.raises(ValueError, match="add up only over"):
        whole.merge(new(other).update(other))
    assert whole == new(data).update(data)


def test_families_of_others_are_refused():
    data, other = rows(), rows(n_states=4)
    counts = families(data).update(data)
    with pytest.raises(ValueError, match="but the two differ in parents"):
        counts.merge(families(data, Structure([-1, -1, 1])))
    with pytest.raises(
        ValueError, match=r"classes and n_states \[3, 3, 3\], the batch has 2 classes and n_states \[4, 4, 4\]"
    ):
        counts.update(other)
    heavy = EncodedData(data.codes[:, :2], data.n_states, data.y[:2], 2, np.full(2, 2**61))
    with pytest.raises(ValueError, match="integer weights add up to"):
        counts.update(heavy).merge(families(data).update(heavy))
    assert repr(families(data)) == "FamilyCounts(n_features=3, n_classes=2, n_cells=44, weight=0, dtype=int64)"

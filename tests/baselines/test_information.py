"""Information counted from rows against that of pair counts."""

import numpy as np
import pytest

from tanlearn import CountState, EncodedData
from tanlearn.baselines import ChowLiu, KDependence, information
from tanlearn.baselines.information import Information


def random_data(seed, n_states, n=60, weights=None):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(-1, k, n) for k in n_states], axis=1)  # -1 is missing
    weight = {None: None, "integer": rng.integers(0, 3, n), "real": rng.uniform(0, 2, n)}[weights]
    return EncodedData.from_codes(X, rng.integers(0, 3, n), n_states=n_states, sample_weight=weight)


@pytest.mark.parametrize("weights", [None, "integer", "real"])
@pytest.mark.parametrize("n_states", [[40, 2, 3, 50, 1], [30, 40, 50], [300, 2]])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_information_of_rows_is_that_of_their_counts(n_states, weights, n_jobs, monkeypatch):
    data = random_data(0, n_states, weights=weights)
    expected = Information.of_counts(CountState(data.n_states, data.n_classes).update(data))
    monkeypatch.setattr(information, "_DENSE_CELLS", 0)
    monkeypatch.setattr(information, "_CELLS_A_ROW", 1)
    monkeypatch.setattr(information.CountState, "__init__", refuse_pairs_with_wide(information.CountState.__init__))
    found = Information.of_rows(data, n_jobs=n_jobs)
    off_diagonal = ~np.eye(len(n_states), dtype=bool)
    np.testing.assert_array_equal(found.of_class, expected.of_class)
    np.testing.assert_array_equal(found.of_pairs[off_diagonal], expected.of_pairs[off_diagonal])
    assert found.of_pairs[off_diagonal].max() > 0.01
    assert found.n_classes == expected.n_classes
    assert found.weight == pytest.approx(expected.weight, rel=1e-15)


def refuse_pairs_with_wide(init):
    """Have a state of pairs fail if it holds a feature that is to be counted sparsely."""

    def checked(self, n_states, n_classes):
        assert len(n_states) == 1 or max(n_states) < 10
        init(self, n_states, n_classes)

    return checked


@pytest.mark.parametrize("learner", [ChowLiu(), ChowLiu(penalty="bic"), KDependence(k=2)])
def test_structures_do_not_depend_on_how_pairs_are_counted(learner, monkeypatch):
    data, rng = random_data(1, [40, 2, 3, 50, 1, 4]), np.random.default_rng(0)
    expected = learner.from_counts(CountState(data.n_states, data.n_classes).update(data))
    assert learner.learn(data, rng) == expected
    monkeypatch.setattr(information, "_DENSE_CELLS", 0)
    monkeypatch.setattr(information, "_CELLS_A_ROW", 1)
    assert learner.learn(data, rng) == expected


def test_tables_with_more_cells_than_rows_fill_are_counted_sparsely():
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 3000, (500, 4)), rng.integers(0, 2, 500), n_states=[3000] * 4)
    assert Information.of_rows(data).of_pairs.shape == (4, 4)  # 108 million counts otherwise, 860 MB


def test_information_is_rounded_to_the_nearest_multiple_of_the_quantum():
    step = 2.0**-40
    values = np.array([0.0, 1e-16, 0.49 * step, 0.51 * step, 1 + 1.4 * step, 0.1 + 0.2])
    assert information.round_information(values).tolist()[:5] == [0.0, 0.0, 0.0, step, 1 + step]
    assert information.round_information(values)[5] == information.round_information(np.array([0.3]))[0]


def test_counts_are_sparse_beyond_a_number_of_counts_and_of_cells_a_row(monkeypatch):
    data = random_data(2, [12, 13, 2], n=54)  # 12 * 12 * 3 cells are eight for each of 54 rows
    n_counts = 3 * (12 * 13 + 12 * 2 + 13 * 2)
    wide = []
    inform = information._inform
    monkeypatch.setattr(information, "_inform", lambda data, i, *rest: wide.append(i) or inform(data, i, *rest))
    monkeypatch.setattr(information, "_DENSE_CELLS", n_counts)
    Information.of_rows(data)
    assert wide == []
    monkeypatch.setattr(information, "_DENSE_CELLS", n_counts - 1)
    Information.of_rows(data)
    assert wide == [1]

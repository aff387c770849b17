"""Decomposable scores of families against the textbook formulas."""

import numpy as np
import pytest
from oracles import family_scores as naive

from tanlearn import EncodedData
from tanlearn.baselines import scored_families
from tanlearn.baselines.family_scores import FAMILY_SCORES, make_score
from tanlearn.baselines.scored_families import FamilyScorer, with_class_as_feature

N_STATES, N_CLASSES = (2, 3, 4, 2), 3
FAMILIES = [(0, ()), (0, (1,)), (1, (0,)), (2, (1,)), (0, (1, 2)), (3, (0, 1, 2)), (2, (3, 0))]


def table(seed=0, n=60, missing=0.0, weight=None):
    """Return rows with the class as last column, their weights, and the encoded data."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    X[:, 3] = np.where(rng.random(n) < 0.7, X[:, 0], X[:, 3])
    y = np.where(rng.random(n) < 0.6, X[:, 1], rng.integers(0, N_CLASSES, n))
    X[rng.random(X.shape) < missing] = -1
    weights = {None: np.ones(n), "integer": rng.integers(0, 4, n), "real": rng.uniform(0, 2, n)}[weight]
    given = None if weight is None else weights
    data = EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=N_CLASSES, sample_weight=given)
    return np.column_stack([X, y]).tolist(), weights.tolist(), data


@pytest.mark.parametrize("score", FAMILY_SCORES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, "integer", "real"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_scores_equal_the_textbook_formulas(score, missing, weight, is_sparse, monkeypatch):
    if is_sparse:
        monkeypatch.setattr(scored_families, "_BLOCK", 0)
        monkeypatch.setattr(scored_families, "_CELLS_A_ROW", 0)
        monkeypatch.setattr(scored_families, "_MAX_KEY", 7.0)
    rows, weights, data = table(missing=missing, weight=weight)
    scorer = FamilyScorer(data, make_score(score, 2.5))
    for child, parents in FAMILIES:
        expected = naive.family_score(rows, weights, child, parents, 4, (*N_STATES, N_CLASSES), score, 2.5)
        assert scorer(child, [parents])[0] == pytest.approx(expected, abs=1e-8)
    of_class = naive.plain_score(rows, weights, 4, (), (*N_STATES, N_CLASSES), score, 2.5)
    assert scorer.class_score == pytest.approx(of_class, abs=1e-8)


@pytest.mark.parametrize("score", FAMILY_SCORES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_counts_of_pairs_give_the_scores_of_counted_families(score, missing):
    _, _, data = table(seed=1, missing=missing, weight="integer")
    pairs, single = (FamilyScorer(data, make_score(score, 1.0)) for _ in range(2))
    pairs.add_pairs()
    n_scored = pairs.n_evaluations
    for i in range(4):
        others = [(j,) for j in range(4) if j != i]
        assert pairs(i, others).tolist() == single(i, others).tolist()
    assert pairs.n_evaluations == n_scored == single.n_evaluations == 4 + 12


def test_many_pairs_are_not_counted_at_once(monkeypatch):
    _, _, data = table()
    monkeypatch.setattr(scored_families, "_MAX_PAIR_CELLS", 10)
    scorer = FamilyScorer(data, make_score("bic", 1.0))
    scorer.add_pairs()
    assert scorer.n_evaluations == 4


@pytest.mark.parametrize("score", FAMILY_SCORES)
def test_score_of_the_features_and_the_class_as_equal_nodes(score):
    rows, weights, data = table(seed=2, missing=0.1)
    scorer = FamilyScorer(with_class_as_feature(data), make_score(score, 1.0))
    parents = [(4,), (0, 4), (), (2,), (2,)]
    expected = naive.network_score(rows, weights, parents, None, (*N_STATES, N_CLASSES), score)
    assert scorer.total(parents) == pytest.approx(expected, abs=1e-8)
    assert scorer.class_score == 0


def test_parents_without_an_effect_cost_what_the_score_charges():
    """A constant parent leaves all counts as they are: only penalties change, and those of BDeu and K2 are 0."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, 3, 50), np.zeros(50, int)], axis=1)
    data = EncodedData.from_codes(X, rng.integers(0, 2, 50), n_states=[3, 1])
    for score in FAMILY_SCORES:
        alone, given = FamilyScorer(data, make_score(score, 1.0))(0, [(), (1,)])
        assert alone == given


def test_equivalent_directions_have_exactly_equal_scores():
    """BDeu, BIC and AIC depend on the edges without their directions; rounding keeps this exact."""
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 5, (500, 2)), rng.integers(0, 3, 500))
    for score in ("bdeu", "bic", "aic", "log-likelihood"):
        scorer = FamilyScorer(data, make_score(score, 1.0))
        assert scorer.total([(), (0,)]) == scorer.total([(1,), ()])


def test_permuted_values_and_rows_change_no_bit():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 6, (400, 3)), rng.integers(0, 2, 400)
    weights = rng.uniform(0.5, 2, 400)
    order, renamed = rng.permutation(400), rng.permutation(6)[X]
    for score in FAMILY_SCORES:
        first, second = (
            FamilyScorer(EncodedData.from_codes(codes, c, sample_weight=w), make_score(score, 1.0))
            for codes, c, w in ((X, y, weights), (renamed[order], y[order], weights[order]))
        )
        assert first(0, [(), (1,), (1, 2)]).tolist() == second(0, [(), (1,), (1, 2)]).tolist()


def test_huge_families_are_scored_without_their_cells():
    """Five parents of 1,000 values: 1e18 cells, of which at most 300 occur."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1000, (300, 6))
    data = EncodedData.from_codes(X, rng.integers(0, 2, 300), n_states=[1000] * 6)
    scorer = FamilyScorer(data, make_score("log-likelihood", 1.0))
    assert scorer(0, [(1, 2, 3, 4, 5)])[0] == pytest.approx(0.0, abs=1e-6)  # every context occurs once
    rows = np.column_stack([X, data.y]).tolist()
    expected = naive.family_score(rows, [1] * 300, 0, (1, 2, 3, 4, 5), 6, [1000] * 6 + [2], "bdeu")
    assert FamilyScorer(data, make_score("bdeu", 1.0))(0, [(1, 2, 3, 4, 5)])[0] == pytest.approx(expected, rel=1e-9)

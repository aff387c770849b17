"""Expectation maximisation: each iteration against enumeration, and what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import elimination as naive

from tanlearn import BayesNetClassifier, EncodedData, ExpectationMaximization, MaximumLikelihood, Structure
from tanlearn._memory import TableMemoryError
from tanlearn.structures.table_layout import TableLayout

RNG = np.random.default_rng(0)
N_STATES = [2, 3, 2]
STRUCTURES = [Structure([-1, -1, -1]), Structure([-1, 0, 1]), Structure([[-1, -1], [0, -1], [0, 1]])]


def gappy_data(missing, n=30, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, N_STATES, (n, 3))
    X[rng.random(X.shape) < missing] = -1
    return EncodedData.from_codes(X, rng.integers(0, 2, n), n_states=N_STATES, n_classes=2, sample_weight=weight)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_an_iteration_counts_completions(structure):
    """Expected counts by enumeration; a missing feature without observed ones below counts for nothing."""
    data = gappy_data(0.3, weight=np.arange(1, 31) % 4)
    layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
    start = MaximumLikelihood(alpha=0.5).fit(structure, data, RNG)
    counts = np.zeros(layout.n_cells)
    for n, codes in enumerate(data.codes.T.astype(int)):
        sample = np.where(codes == 255, -1, codes)
        weight = data.weights[n] * np.eye(2)[data.y[n]]
        found = naive.expected_counts(sample, weight, start.cells, structure.parents.tolist(), N_STATES, 2)
        needed = sample >= 0
        for child in reversed(structure.order.tolist()):
            if needed[child]:
                needed[[j for j in structure.parents[child] if j >= 0]] = True
        for i in np.flatnonzero(~needed):
            found[layout.offset[i] : layout.offset[i + 1]] = [0.0] * (layout.offset[i + 1] - layout.offset[i])
        counts += found
    expected = MaximumLikelihood(alpha=0.5).from_counts(layout, counts)
    learner = ExpectationMaximization(alpha=0.5, max_iter=1)
    np.testing.assert_allclose(learner.fit(structure, data, RNG).cells, expected.cells, rtol=1e-10)
    assert not learner.converged_


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.sampled_from(STRUCTURES),
    st.floats(0.05, 0.95),
    st.sampled_from([0.0, 0.1, 1.0, 10.0]),
)
def test_the_likelihood_never_falls(seed, structure, missing, alpha):
    learner = ExpectationMaximization(alpha=alpha, max_iter=30, tol=0)
    tables = learner.fit(structure, gappy_data(missing, seed=seed), RNG)
    assert np.diff([iteration.score for iteration in learner.history_]).min(initial=0) > -1e-9
    assert not np.isnan(tables.cells).any()
    for i in range(3):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1)


def test_likelihood_is_that_of_what_is_observed():
    data = gappy_data(0.4)
    learner = ExpectationMaximization(alpha=1, max_iter=1)
    learner.fit(STRUCTURES[1], data, RNG)
    start = MaximumLikelihood(alpha=1).fit(STRUCTURES[1], data, RNG)
    parents = STRUCTURES[1].parents.tolist()
    samples = np.where(data.codes == 255, -1, data.codes.astype(int)).T
    scores = [naive.log_joint(x, start.cells, parents, N_STATES, 2)[c] for x, c in zip(samples, data.y, strict=True)]
    assert learner.history_[0].score == pytest.approx((sum(scores) + start.cells.sum()) / 30, rel=1e-12)


def test_every_estimate_but_the_last_has_its_likelihood():
    """An iteration computes the likelihood of the tables that it starts from, and needs none of its own."""
    data = gappy_data(0.4)
    ended = ExpectationMaximization(max_iter=3, tol=0)
    last = ended.fit(STRUCTURES[1], data, RNG)
    assert (ended.n_iter_, ended.converged_, len(ended.history_)) == (3, False, 3)
    longer = ExpectationMaximization(max_iter=4, tol=0)
    longer.fit(STRUCTURES[1], data, RNG)
    assert longer.history_[:3] == ended.history_
    converged = ExpectationMaximization(tol=1.01 * (longer.history_[3].score - longer.history_[2].score))
    np.testing.assert_array_equal(converged.fit(STRUCTURES[1], data, RNG).cells, last.cells)
    assert (converged.n_iter_, converged.converged_, converged.history_) == (3, True, longer.history_)


def test_complete_rows_give_the_frequencies():
    data = gappy_data(0.0)
    learner = ExpectationMaximization(alpha=0.3)
    expected = MaximumLikelihood(alpha=0.3).fit(STRUCTURES[1], data, RNG)
    np.testing.assert_array_equal(learner.fit(STRUCTURES[1], data, RNG).cells, expected.cells)
    assert (learner.n_iter_, learner.converged_, learner.history_) == (0, True, [])


def test_what_is_missing_may_depend_on_what_is_observed():
    """x1 mostly equals x0, and is mostly seen where x0 is 1: leaving rows out misjudges how often x1 is 1."""
    rng = np.random.default_rng(1)
    x0 = rng.integers(0, 2, 4000)
    x1 = np.where(rng.random(4000) < 0.9, x0, 1 - x0)
    seen = (x0 == 1) | (rng.random(4000) < 0.2)
    X = np.stack([x1, x0], axis=1)
    X[~seen, 0] = -1
    data = EncodedData.from_codes(X, np.zeros(4000, int), n_states=[2, 2], n_classes=2)
    structure = Structure([-1, 0])  # x1 is the root, so its table alone says how often it is 1
    learner = ExpectationMaximization(max_iter=500, tol=1e-9)
    assert learner.fit(structure, data, RNG).probabilities(0)[1, 0] == pytest.approx(0.5, abs=0.03)
    assert MaximumLikelihood().fit(structure, data, RNG).probabilities(0)[1, 0] > 0.7


@pytest.mark.parametrize("structure", STRUCTURES)
def test_threads_change_nothing(structure):
    data = gappy_data(0.3, n=1500)
    one, two = (ExpectationMaximization(max_iter=5, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.fit(structure, data, RNG).cells, two.fit(structure, data, RNG).cells)
    assert one.history_ == two.history_


def test_rows_of_weight_zero_do_not_count():
    data = gappy_data(0.3)
    weighted = gappy_data(0.3, weight=np.arange(30) % 3)
    rows = np.repeat(np.arange(30), np.arange(30) % 3)
    ours = ExpectationMaximization().fit(STRUCTURES[1], weighted, RNG)
    np.testing.assert_allclose(ours.cells, ExpectationMaximization().fit(STRUCTURES[1], data.take(rows), RNG).cells)
    of_incomplete_rows = gappy_data(0.3, weight=(~data.is_incomplete).astype(int))
    learner = ExpectationMaximization()
    learner.fit(STRUCTURES[1], of_incomplete_rows, RNG)
    assert (learner.n_iter_, learner.converged_, learner.history_) == (0, True, [])


def test_tables_that_are_too_large_are_refused():
    data = EncodedData.from_codes([[0, 0, 0], [1, 1, -1]], [0, 1], n_states=[60_000] * 3)
    with pytest.raises(TableMemoryError):
        ExpectationMaximization().fit(STRUCTURES[2], data, RNG)


@pytest.mark.parametrize("setting", [{"max_iter": 0}, {"tol": -1.0}, {"alpha": -1.0}])
def test_bad_parameters_are_named(setting):
    with pytest.raises(ValueError, match=f"The '{next(iter(setting))}' parameter of ExpectationMaximization"):
        ExpectationMaximization(**setting).fit(STRUCTURES[0], gappy_data(0.3), RNG)


def test_in_an_estimator_it_tells_how_it_goes(capsys):
    X = [["a", "u"], ["a", None], ["b", "v"], [None, "v"], ["b", "v"], ["a", "u"]]
    learner = ExpectationMaximization(verbose=1)
    model = BayesNetClassifier(structure=Structure([-1, 0]), parameters=learner).fit(X, [0, 0, 1, 1, 1, 0])
    assert capsys.readouterr().out.startswith("iteration 1: mean log-likelihood -")
    assert len(model.parameters_.history_) > 1


def test_cycles_are_refused():
    structure = Structure([1, 0, -1], allow_cycles=True)
    with pytest.raises(ValueError, match="cannot be marginalized in a structure with a cycle"):
        ExpectationMaximization().fit(structure, gappy_data(0.3), RNG)

"""Networks with a latent class: iterations, smoothing and selection against enumeration."""

import numpy as np
import pytest
from oracles import latent_classes as naive

from tanlearn import MaximumLikelihood, Structure
from tanlearn.density import latent_classes, learning
from tanlearn.density.latent_classes import CodedRows, add_pseudo_rows, fit_latent_classes, smooth_over_intervals
from tanlearn.models.log_joint import log_evidence
from tanlearn.structures.table_layout import TableLayout

N_STATES = np.array([2, 3, 2])


def coded_rows(n=40, missing=0.2, n_states=N_STATES, has_intervals=(False, False, False), seed=0):
    """Return rows in which each feature often equals the one before it."""
    rng = np.random.default_rng(seed)
    codes = np.empty((len(n_states), n), np.uint8)
    for i, states in enumerate(n_states):
        codes[i] = rng.integers(0, states, n)
        if i:
            codes[i] = np.where(rng.random(n) < 0.8, np.minimum(codes[i - 1], states - 1), codes[i])
    codes[rng.random(codes.shape) < missing] = 255
    return CodedRows(codes, np.asarray(n_states), np.array(has_intervals), None)


def samples_of(codes):
    """Return rows as lists, with -1 for missing values."""
    return np.where(codes == 255, -1, codes.astype(int)).T.tolist()


@pytest.mark.parametrize("parent", [[-1, -1, -1], [-1, 0, 1], [1, -1, 1]])
def test_an_iteration_counts_classes_and_completions(parent, monkeypatch):
    """The last feature of each row is observed, so that every missing value has something below or is a leaf's."""
    rows = coded_rows(missing=0.3)
    rows = rows._replace(codes=np.where(rows.codes == 255, rows.codes[[2, 2, 2]] % 2, rows.codes).astype(np.uint8))
    rows.codes[0, ::4] = 255  # a root; its children are observed
    if parent == [-1, -1, -1]:  # without children, a missing value counts for nothing
        rows.codes[0, ::4] = 1
    if parent == [1, -1, 1]:
        rows.codes[0, ::4] = 0
        rows.codes[1, ::4] = 255
    structure = Structure(parent)
    start = np.random.default_rng(1).dirichlet(np.ones(2), rows.codes.shape[1])
    learner = MaximumLikelihood(alpha=latent_classes._ALPHA, shrinkage=latent_classes._PSEUDO_ROWS[0])
    monkeypatch.setattr(latent_classes, "_MAX_ITER", 0)
    before, unchanged = fit_latent_classes(structure, rows, start)
    np.testing.assert_array_equal(unchanged, start)
    monkeypatch.setattr(latent_classes, "_MAX_ITER", 1)
    after, posterior = fit_latent_classes(structure, rows, start)
    given = structure.parents.tolist(), N_STATES.tolist(), 2
    samples = samples_of(rows.codes)
    expected = [naive.posterior(sample, before.cells, *given) for sample in samples]
    np.testing.assert_allclose(posterior, expected, rtol=1e-9)
    counts = naive.expected_counts(samples, before.cells, *given)
    layout = TableLayout.of_parents(structure.parents, N_STATES, 2)
    np.testing.assert_allclose(after.cells, learner.from_counts(layout, np.array(counts)).cells, rtol=1e-9)


def test_counts_of_adjacent_intervals_are_mixed():
    layout = TableLayout.of_parents(Structure([-1, 0, 1]).parents, np.array([4, 2, 3]), 2)
    counts = np.random.default_rng(0).random(layout.n_cells)
    expected = counts.copy()
    for i, axes in enumerate([[0], [1], [0]]):  # intervals of feature 0 and 2; feature 1 has categories
        table = expected[layout.offset[i] : layout.offset[i + 1]].reshape(layout.shape(i))
        for axis in axes:
            table[...] = np.apply_along_axis(naive.smoothed_line, axis, table, latent_classes._MIXED)
    smooth_over_intervals(counts, layout, np.array([True, False, True]))
    np.testing.assert_allclose(counts, expected)


def test_pseudo_rows_have_the_frequencies_of_the_feature():
    layout = TableLayout.of_parents(Structure([-1, 0]).parents, np.array([2, 3]), 2)
    counts = np.arange(1.0, 1 + layout.n_cells)
    expected = counts.copy()
    for i, n_rows in enumerate([5.0, 1.0]):
        table = expected[layout.offset[i] : layout.offset[i + 1]].reshape(layout.shape(i))
        shares = [table[v].sum() / table.sum() for v in range(len(table))]
        for v, share in enumerate(shares):
            table[v] += n_rows * share
    add_pseudo_rows(counts, layout, np.array([False, True]))
    np.testing.assert_allclose(counts, expected)
    nothing = np.zeros(layout.n_cells)
    add_pseudo_rows(nothing, layout, np.array([False, True]))
    assert (nothing == 0).all()


def test_smoothing_keeps_totals():
    layout = TableLayout.of_parents(Structure([-1, 0]).parents, np.array([5, 4]), 3)
    counts = np.random.default_rng(0).random(layout.n_cells)
    smoothed = counts.copy()
    smooth_over_intervals(smoothed, layout, np.array([True, True]))
    for i in range(2):
        own = slice(layout.offset[i], layout.offset[i + 1])
        before, after = (c[own].reshape(layout.shape(i)).reshape(-1, 3).sum(axis=0) for c in (counts, smoothed))
        np.testing.assert_allclose(after, before)
    np.testing.assert_array_equal(smoothed[:3], counts[:3])


def test_the_likelihood_grows_with_iterations(monkeypatch):
    rows = coded_rows(n=200)
    start = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    found = []
    for n_iter in (0, 2, 10, 30):
        monkeypatch.setattr(latent_classes, "_MAX_ITER", n_iter)
        tables, _ = fit_latent_classes(Structure([-1, 0, 1]), rows, start)
        given = tables.cells, Structure([-1, 0, 1]).parents.tolist(), N_STATES.tolist(), 3
        found.append(np.mean([naive.evidence(sample, *given) for sample in samples_of(rows.codes)]))
    assert (np.diff(found) > -1e-3).all()
    assert found[-1] > found[0] + 0.001


def test_scores_are_log_probabilities_of_hidden_values():
    rows = coded_rows(n=60)
    candidates = learning._compare(rows, 7, None)
    assert [(c.n_components, c.has_tree) for c in candidates][:4] == [(1, False), (1, True), (2, False), (2, True)]
    rng = np.random.default_rng((7, 0))
    hidden = (rng.random(rows.codes.shape) < learning._HIDDEN) & (rows.codes != 255)
    shown = np.where(hidden, np.uint8(255), rows.codes)
    for size in (1, 2):
        networks = learning._networks(rows._replace(codes=shown), size, 7, None)
        for network, candidate in zip(networks, candidates[2 * (size > 1) :], strict=False):
            given = network.tables.cells, network.structure.parents.tolist(), N_STATES.tolist(), size
            full, rest = (sum(naive.evidence(s, *given) for s in samples_of(codes)) for codes in (rows.codes, shown))
            assert candidate.score == pytest.approx((full - rest) / hidden.sum())


def test_the_best_candidate_is_fitted_to_all_rows():
    rows = coded_rows(n=300, missing=0.1)
    network, candidates = learning.learn_network(rows, "auto", np.random.default_rng(3))
    best = max(candidates, key=lambda candidate: candidate.score)
    assert network.tables.layout.n_classes == best.n_components
    assert (network.structure.parent >= 0).any() == best.has_tree
    again, _ = learning.learn_network(rows, "auto", np.random.default_rng(3))
    np.testing.assert_array_equal(again.tables.cells, network.tables.cells)


def test_a_number_of_classes_is_used_as_given():
    rows = coded_rows(n=50)
    network, candidates = learning.learn_network(rows, 5, np.random.default_rng(0))
    assert network.tables.layout.n_classes == 5
    assert candidates == []


def test_few_rows_are_not_divided_into_many_classes():
    candidates = learning._compare(coded_rows(n=20), 0, None)
    assert {candidate.n_components for candidate in candidates} == {1, 2}


def test_large_tables_are_selected_on_some_rows(monkeypatch):
    rows = coded_rows(n=400)
    monkeypatch.setattr(learning, "_MOST_ROWS", 50)
    assert max(candidate.n_components for candidate in learning._compare(rows, 0, None)) <= 50 // 8


def test_a_posterior_of_one_class_is_an_ordinary_tree():
    rows = coded_rows(n=100, missing=0.0)
    tables, _ = fit_latent_classes(Structure([-1, 0, 1]), rows, np.ones((100, 1)))
    learner = MaximumLikelihood(alpha=latent_classes._ALPHA, shrinkage=latent_classes._PSEUDO_ROWS[0])
    layout = TableLayout.of_parents(Structure([-1, 0, 1]).parents, N_STATES, 1)
    expected = learner.from_counts(layout, layout.count(rows.codes, np.zeros(100, np.intp), np.ones(100)))
    np.testing.assert_allclose(tables.cells, expected.cells, atol=1e-12)
    assert np.isfinite(log_evidence(tables.cells[np.newaxis, :1])).all()


def test_trees_have_no_edges_whose_tables_stay_almost_empty():
    """Two columns of names share the most information, but a fit with an edge between them takes minutes."""
    rng = np.random.default_rng(0)
    names, more, kind = np.arange(400), rng.permutation(400), np.arange(400) % 3
    codes = np.array([names, more, kind, np.where(rng.random(400) < 0.9, kind, 0)], np.uint16)
    rows = CodedRows(codes, np.array([400, 400, 3, 3]), np.zeros(4, bool), None)
    tree = learning._tree(rows, np.ones((400, 1)), None)
    edges = {frozenset(edge) for edge in enumerate(tree.parent.tolist()) if edge[1] >= 0}
    assert frozenset({0, 1}) not in edges
    assert len(edges) == 3  # the names are joined to the others

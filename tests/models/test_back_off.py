"""Tables that back off: the same as dense ones in all they are asked, and what is missing summed out."""

import itertools
import pickle

import numpy as np
import pytest
from oracles import back_off as naive
from scipy.special import logsumexp
from scipy.stats import chisquare
from support.seen_contexts import N_STATES, STRUCTURE, count, table

from tanlearn import EncodedData, HierarchicalSmoothing, InexactMarginalizationWarning, Structure
from tanlearn._memory import TableMemoryError
from tanlearn.models import local_networks
from tanlearn.models.back_off import BackOffTables
from tanlearn.models.completion import most_probable_completion
from tanlearn.models.explanation import explain
from tanlearn.models.log_joint import log_joint
from tanlearn.models.sampling import sample

M = np.array([1.0, 0.5, 2.0, 1.5])
PRIOR = np.log([0.2, 0.3, 0.5])
GAPS = table(60, 0.35, seed=5)


def tables(missing=0.2, weights=None):
    """Return tables of random rows."""
    data = table(missing=missing, weights=weights)
    return BackOffTables(count(data), M, PRIOR), data


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_smoothed_frequencies(missing):
    learnt, data = tables(missing, "integer")
    X = np.where(data.codes == 255, -1, data.codes.astype(int)).T.tolist()
    families = [[j for j in row if j >= 0] for row in STRUCTURE.parents.tolist()]
    complete = table(20, 0, seed=1)
    found = log_joint(learnt, STRUCTURE, complete.codes)
    for row, scores in zip(complete.codes.T.tolist(), found, strict=True):
        arguments = X, data.y.tolist(), data.weights.tolist(), families, np.exp(PRIOR), N_STATES, M
        np.testing.assert_allclose(scores, naive.log_joint(row, *arguments), rtol=1e-12)


def test_dense_tables_are_the_same():
    learnt, _ = tables()
    dense = learnt.to_dense()
    complete = table(300, 0, seed=2).codes
    np.testing.assert_allclose(
        log_joint(learnt, STRUCTURE, complete), log_joint(dense, STRUCTURE, complete), rtol=1e-13
    )
    for i in range(4):
        np.testing.assert_allclose(learnt.probabilities(i).sum(axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose(learnt.of_rows(i, complete), dense.of_rows(i, complete), rtol=1e-13)
        y = np.arange(300) % 3
        for one, two in itertools.pairwise([learnt.conditional(i, complete, y), dense.conditional(i, complete, y)]):
            np.testing.assert_allclose(one[0][:, one[1]], two[0][:, two[1]], rtol=1e-13)
    assert len(learnt) == 4
    with pytest.raises(IndexError, match="from 0 to 3, got 4"):
        _ = learnt[4]


def test_what_is_missing_is_summed_out():
    learnt, _ = tables()
    found = log_joint(learnt, STRUCTURE, GAPS.codes)
    for row, scores in zip(GAPS.codes.T.astype(int), found, strict=True):
        completed = itertools.product(*(range(n) if x == 255 else [x] for x, n in zip(row, N_STATES, strict=True)))
        codes = np.array(list(completed), np.uint8).T.copy()
        np.testing.assert_allclose(scores, logsumexp(log_joint(learnt, STRUCTURE, codes), axis=0), rtol=1e-12)
    assert np.array_equal(found, log_joint(learnt, STRUCTURE, GAPS.codes, n_jobs=2))
    assert np.array_equal(found[7:9], log_joint(learnt, STRUCTURE, GAPS.codes[:, 7:9].copy()))


@pytest.mark.parametrize("capacity", [1, 5, 20, 100])
def test_slices_change_nothing_but_rounding(monkeypatch, capacity):
    learnt, _ = tables()
    y = np.arange(GAPS.n_samples) % 3
    whole = log_joint(learnt, STRUCTURE, GAPS.codes)
    filled = [most_probable_completion(learnt, STRUCTURE, GAPS.codes, classes) for classes in (None, y)]
    monkeypatch.setattr(local_networks, "_CAPACITY", capacity)
    found = log_joint(learnt, STRUCTURE, GAPS.codes, is_exact=True)
    np.testing.assert_allclose(found, whole, rtol=1e-12)
    np.testing.assert_array_equal(log_joint(learnt, STRUCTURE, GAPS.codes, n_jobs=2), found)
    np.testing.assert_array_equal(log_joint(learnt, STRUCTURE, GAPS.codes[:, 7:9].copy()), found[7:9])
    for classes, expected in zip((None, y), filled, strict=True):
        for one, two in zip(most_probable_completion(learnt, STRUCTURE, GAPS.codes, classes), expected, strict=True):
            np.testing.assert_array_equal(one, two)


def test_rows_of_too_many_operations_back_off_with_a_warning(monkeypatch):
    """Missing features are left out, and others given the parents before the first missing one."""
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "20")
    learnt, data = tables(0.0)
    codes = np.array([[1, 1, 255, 0], [255, 1, 3, 1], [255, 255, 255, 255], [2, 255, 1, 255]], np.uint8).T.copy()
    exact = local_networks.LocalNetworks(learnt, STRUCTURE).is_exact(codes, np.arange(4))
    assert exact.tolist() == [False, False, True, True]
    X, families = data.codes.T.astype(int).tolist(), [[j for j in row if j >= 0] for row in STRUCTURE.parents.tolist()]
    with pytest.warns(InexactMarginalizationWarning, match="scores of rows 0, 1 are approximate, .* 20 operations"):
        found = log_joint(learnt, STRUCTURE, codes)
    for n in (0, 1):
        row = [-1 if x == 255 else x for x in codes[:, n].tolist()]
        arguments = X, data.y.tolist(), [1] * 200, families, np.exp(PRIOR), N_STATES, M
        np.testing.assert_allclose(found[n], naive.log_joint(row, *arguments), rtol=1e-12)
    with pytest.raises(
        ValueError,
        match=r"at most 20 operations, but row 0 lacks 1 feature .* more\. The same holds for row 1\. Impute",
    ):
        log_joint(learnt, STRUCTURE, codes, is_exact=True)
    with pytest.warns(InexactMarginalizationWarning, match="scores of rows 0, 1 are approximate"):
        contributions = explain(learnt, STRUCTURE, codes)
    np.testing.assert_allclose(contributions.sum(axis=1), found, rtol=1e-12)
    with pytest.raises(ValueError, match="row 0 lacks 1 feature that depend on each other"):
        most_probable_completion(learnt, STRUCTURE, codes)


def test_completions_and_explanations_are_those_of_dense_tables():
    learnt, _ = tables()
    dense = learnt.to_dense()
    y = np.arange(GAPS.n_samples) % 3
    for classes in (None, y):
        found = most_probable_completion(learnt, STRUCTURE, GAPS.codes, classes, n_jobs=2)
        for one, two in zip(found, most_probable_completion(dense, STRUCTURE, GAPS.codes, classes), strict=True):
            np.testing.assert_array_equal(one, two)
    found = explain(learnt, STRUCTURE, GAPS.codes)
    np.testing.assert_allclose(found, explain(dense, STRUCTURE, GAPS.codes), rtol=1e-9, atol=1e-12)


def test_samples_are_as_frequent_as_they_are_probable():
    learnt, _ = tables(0.0)
    codes, y = sample(learnt, STRUCTURE, 20_000, np.random.default_rng(1))
    everything = np.array(list(itertools.product(*map(range, N_STATES))), np.uint8).T.copy()
    expected = np.exp(log_joint(learnt, STRUCTURE, everything)).ravel() * 20_000
    observed = np.bincount(np.ravel_multi_index((*codes.astype(int), y), (*N_STATES, 3)), minlength=expected.size)
    rare = expected < 5
    observed, expected = (np.append(a[~rare], a[rare].sum()) for a in (observed, expected))
    assert chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 0.001


def test_other_priors_pickles_threads_and_sizes():
    learnt, data = tables()
    other = learnt.with_log_prior(np.log([0.5, 0.25, 0.25]))
    complete = table(20, 0, seed=1).codes
    shift = np.log([0.5, 0.25, 0.25]) - PRIOR
    np.testing.assert_allclose(
        log_joint(other, STRUCTURE, complete), log_joint(learnt, STRUCTURE, complete) + shift, rtol=1e-12
    )
    learnt.cells  # noqa: B018
    again = pickle.loads(pickle.dumps(learnt))
    assert "cells" not in vars(again)
    threads = BackOffTables(count(data), M, PRIOR, n_jobs=2)
    for twin in (again, threads):
        np.testing.assert_array_equal(
            log_joint(twin, STRUCTURE, complete), log_joint(learnt, STRUCTURE, complete, n_jobs=2)
        )
    assert learnt.n_parameters == learnt.n_cells - 1
    assert repr(learnt) == f"BackOffTables(n_features=4, n_classes=3, n_parameters={learnt.n_parameters})"


def test_entries_of_a_level_are_sums_over_longer_contexts():
    learnt, _ = tables(0.0)
    values, counts = learnt.families[3].entries(3)
    for level in range(3):
        shorter = np.delete(values, slice(level, 3), axis=1)
        expected = {}
        for row, n in zip(shorter.tolist(), counts, strict=True):
            expected[tuple(row)] = expected.get(tuple(row), 0) + n
        found, sums = learnt.families[3].entries(level)
        assert dict(zip(map(tuple, found.tolist()), sums.tolist(), strict=True)) == expected


def test_dense_tables_that_would_be_too_large_are_refused():
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 300, (200, 6)), rng.integers(0, 2, 200), n_states=[300] * 6)
    structure = Structure([[-1] * 5] * 5 + [[0, 1, 2, 3, 4]])
    learnt = HierarchicalSmoothing(m=1.0).fit(structure, data, rng)
    assert isinstance(learnt, BackOffTables)
    assert np.isfinite(log_joint(learnt, structure, data.codes)).all()
    for call in (lambda: learnt.cells, lambda: learnt[5], lambda: learnt.probabilities(5)):
        with pytest.raises(
            TableMemoryError, match="feature 5 given feature 0 and feature 1 and feature 2 and feature 3 and feature 4"
        ):
            call()
    with pytest.raises(ValueError, match="device='cuda' has no kernels for CPTs that back off"):
        learnt.check_device("cuda")

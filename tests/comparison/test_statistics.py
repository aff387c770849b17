"""Tests of differences against oracles and published examples, and the methods of comparisons that use them."""

import itertools

import numpy as np
import pytest
from oracles import paired_tests as oracle

from tanlearn._rank_tests import critical_difference, friedman_test, ranks_of
from tanlearn.comparison import CellResult, Comparison
from tanlearn.comparison import statistics as own
from tanlearn.comparison.statistics import (
    corrected_t_test,
    equivalence_probabilities,
    holm,
    signed_ranks_p,
)

#: AUC of C4.5, and of C4.5 with tuned m, cf and both, on 14 data sets (Demsar 2006, table 6).
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9752, 0.975],  # its ranks show that 0.975 and 0.975 differ
        [0.957, 0.978, 0.946, 0.970],
    ]
)


def comparison(values, measure="error", n_train=80, n_test=20):
    """Return a comparison with values (n_datasets, n_learners, n_splits) of a measure; NaN is a failure."""
    cells = []
    for (i, j, k), value in np.ndenumerate(values):
        outcome = {"failure": "failed"} if np.isnan(value) else {measure: float(value)}
        names = {"dataset": f"set {i}", "learner": "ABCDEFGH"[j]}
        splits = {"repeat": 1, "fold": k + 1, "n_folds": values.shape[2], "seed": 0}
        sizes = {"n_train": n_train, "n_test": n_test}
        identity = {"data_id": str(i), "learner_id": str(j), "settings": "", "versions": ""}
        cells.append(CellResult(**names, **splits, **sizes, **identity, **outcome))
    return Comparison(cells)


@pytest.mark.parametrize("n_splits", [2, 3, 10, 50])
def test_corrected_t_test_agrees_with_the_oracle(n_splits):
    rng = np.random.default_rng(n_splits)
    for mean in (0.0, 0.3, -2.0):
        differences = rng.normal(mean, 1.0, n_splits)
        p, _ = corrected_t_test(differences, 20 / 80)
        assert p == pytest.approx(oracle.corrected_t_test(differences.tolist(), 80, 20), rel=1e-3)


def test_interval_contains_zero_if_the_test_is_not_significant():
    rng = np.random.default_rng(0)
    found = [(*corrected_t_test(d, 0.25), abs(d.mean())) for d in rng.normal(0.5, 1.0, (200, 10))]
    assert all((p > 0.05) == (mean < width) for p, width, mean in found)
    assert {p > 0.05 for p, *_ in found} == {True, False}


def test_constant_differences_are_certain():
    assert corrected_t_test(np.zeros(5), 0.25) == (1.0, 0.0)
    assert corrected_t_test(np.full(5, 0.1), 0.25) == (0.0, 0.0)


def test_holm_agrees_with_the_oracle():
    rng = np.random.default_rng(0)
    for n in range(6):
        p = rng.random(n) ** 3
        assert holm(p).tolist() == pytest.approx(oracle.holm(p.tolist()))
    assert holm(np.array([0.02, 0.01, 0.03])).tolist() == pytest.approx([0.04, 0.03, 0.04])
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="needs tanlearn[compare]")
    assert holm(p).tolist() == pytest.approx(multitest.multipletests(p, method="holm")[1].tolist())


def test_signed_ranks_of_the_published_example():
    """Demsar 2006, table 2: rank sums 93 and 12 for C4.5 with tuned m against C4.5; z = -2.54."""
    differences = DEMSAR[:, 1] - DEMSAR[:, 0]
    assert oracle.signed_rank_sums(differences.round(3).tolist()) == (93, 12)
    assert 0.005 < signed_ranks_p(differences) < 0.02


def test_signed_ranks_agree_with_all_signs():
    rng = np.random.default_rng(0)
    for n in (3, 6, 9):
        differences = rng.normal(0.5, 1.0, n)
        assert signed_ranks_p(differences) == pytest.approx(oracle.exact_signed_ranks_p(differences.tolist()))
    assert signed_ranks_p(np.zeros(4)) == 1.0


def test_friedman_of_the_published_example():
    """Demsar 2006, section 3.2.3: chi-squared 9.28 without the correction for ties, F 3.69, critical value 2.85."""
    ranks = ranks_of(-DEMSAR)
    assert ranks.tolist() == [oracle.ranks(row) for row in (-DEMSAR).tolist()]
    assert ranks.mean(axis=0).round(3).tolist() == [3.143, 2.0, 2.893, 1.964]
    chi2, f = oracle.friedman((-DEMSAR).tolist())
    assert (round(chi2, 2), round(f, 2)) == (9.28, 3.69)
    found, p = friedman_test(-DEMSAR)
    # Three data sets have two equal values and one has four.
    assert found == pytest.approx(chi2 / (1 - (3 * (2**3 - 2) + 4**3 - 4) / (14 * 4 * (4**2 - 1))))
    assert 0.01 < p < 0.05


def test_friedman_without_ties_agrees_with_the_oracle():
    values = np.random.default_rng(0).normal(size=(8, 4)) + np.array([0, 0, 0.5, 1])
    assert friedman_test(values)[0] == pytest.approx(oracle.friedman(values.tolist())[0])
    assert np.isnan(friedman_test(values[:, :2])).all()
    assert np.isnan(friedman_test(np.ones((5, 3)))).all()


@pytest.mark.parametrize(("n", "k"), [(2, 3), (3, 3), (2, 4)])
def test_agreement_on_few_data_sets_is_as_likely_as_equal_orders(n, k):
    """The F distribution alone would give 0; of all orders on the other data sets, one agrees with the first."""
    orders = list(itertools.permutations(range(k)))
    others = itertools.product(orders, repeat=n - 1)
    p = np.mean([all(order == orders[0] for order in own) for own in others])
    assert friedman_test(np.tile(np.arange(k, dtype=float), (n, 1)))[1] == pytest.approx(p)


@pytest.mark.parametrize(
    ("k", "alpha", "q"), [(2, 0.05, 1.960), (4, 0.05, 2.569), (10, 0.05, 3.164), (4, 0.1, 2.291), (10, 0.1, 2.920)]
)
def test_critical_differences_are_the_published_ones(k, alpha, q):
    """Demsar 2006, table 5 (a), and the example of section 3.2.4."""
    assert critical_difference(14, k, alpha) == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 14)), abs=1e-3)
    assert round(critical_difference(14, 4, 0.05), 2) == 1.25


@pytest.mark.parametrize("rope", [0.0, 0.5, 2.0])
def test_equivalence_agrees_with_the_oracle(rope):
    pytest.importorskip("baycomp", reason="needs tanlearn[compare]")
    differences = np.random.default_rng(0).normal(-0.6, 1.0, 8)
    found = equivalence_probabilities(differences, rope)
    expected = oracle.equivalence(differences.tolist(), rope, np.random.default_rng(1))
    assert sum(found) == pytest.approx(1.0)
    assert found == pytest.approx(expected, abs=0.03)
    assert found == equivalence_probabilities(differences, rope)


def test_paired_tests_of_a_comparison():
    values = np.random.default_rng(0).normal(10.0, 1.0, (2, 3, 10))
    values[:, 1] += 3.0
    found = comparison(values).paired("A")
    assert [(one.dataset, one.first, one.second, one.n_splits) for one in found] == [
        (name, learner, "A", 10) for name in ("set 0", "set 1") for learner in "BC"
    ]
    for one, (i, j) in zip(found, itertools.product(range(2), (1, 2)), strict=True):
        differences = values[i, j] - values[i, 0]
        assert one.p_value == pytest.approx(oracle.corrected_t_test(differences.tolist(), 80, 20), rel=1e-3)
        assert one.difference == pytest.approx(differences.mean())
        assert one.low < one.difference < one.high
        assert (one.low <= 0 <= one.high) == (one.p_value >= 0.05)
    for pair in (found[:2], found[2:]):
        assert [one.p_holm for one in pair] == pytest.approx(oracle.holm([one.p_value for one in pair]))
    assert found[0].p_holm < 0.05 < found[1].p_holm


def test_pairs_use_the_splits_that_both_have_finished():
    values = np.random.default_rng(0).normal(10.0, 1.0, (1, 3, 6))
    values[0, 1, 2] = values[0, 2, 1:] = np.nan
    (found,) = comparison(values).paired("A")
    assert (found.first, found.n_splits) == ("B", 5)  # C has a single split
    assert np.isnan(comparison(values).mean()[0, 1:]).all()
    assert comparison(values).best() == {"set 0": ["A"]}


def test_best_learners_are_decided_by_the_test_and_not_by_the_mean():
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal([[10.0], [10.1], [20.0]], 1.0, (3, 10)) for _ in range(2)])
    means = values.mean(axis=2)
    found = comparison(values).best()
    assert means[0, 0] != means[0, 1]
    assert [sorted(names) for names in found.values()] == [["A", "B"]] * 2
    assert [names[0] for names in found.values()] == ["AB"[i] for i in means[:, :2].argmin(axis=1)]
    scores = comparison(1.0 - values / 100, "auc").best("auc")
    assert {name: sorted(names) for name, names in scores.items()} == {name: sorted(n) for name, n in found.items()}
    assert comparison(values[:, :, :1]).best() == {"set 0": [], "set 1": []}  # no test


def test_ranks_leave_out_incomplete_data_sets():
    values = np.repeat(-DEMSAR[:, :, np.newaxis], 2, axis=2)
    found = comparison(values).ranks()
    assert found.mean_ranks.round(3).tolist() == [3.143, 2.0, 2.893, 1.964]
    assert (found.learners, len(found.datasets), found.left_out) == (list("ABCD"), 14, [])
    assert (found.chi2, found.p_value) == friedman_test(-DEMSAR)
    values[3, 2, 0] = np.nan
    found = comparison(values).ranks(alpha=0.1)
    assert (len(found.datasets), found.left_out) == (13, ["set 3"])
    assert found.critical_difference == critical_difference(13, 4, 0.1)
    upward = comparison(np.repeat(DEMSAR[:, :, np.newaxis], 2, axis=2), "auc").ranks("auc")
    assert upward.mean_ranks.round(3).tolist() == [3.143, 2.0, 2.893, 1.964]
    with pytest.raises(
        ValueError,
        match=r"ranks need at least two learners.* 4 learner\(s\) with results, and 1 of 1 data sets are complete\.",
    ):
        comparison(values[:1]).ranks()


def test_ranks_leave_out_learners_without_a_complete_data_set():
    values = np.repeat(-DEMSAR[:, :, np.newaxis], 2, axis=2)
    expected = comparison(values[:, [0, 2, 3]]).ranks()
    values[:, 1, 1] = np.nan
    found = comparison(values).ranks()
    assert (found.learners, found.learners_left_out, found.left_out) == (["A", "C", "D"], ["B"], [])
    assert found.mean_ranks.tolist() == expected.mean_ranks.tolist()
    assert (found.p_value, found.critical_difference) == (expected.p_value, expected.critical_difference)


def test_nemenyi_agrees_with_critical_differences():
    pytest.importorskip("scikit_posthocs", reason="needs tanlearn[compare]")
    found = comparison(np.repeat(-DEMSAR[:, :, np.newaxis], 2, axis=2)).ranks(alpha=0.1)
    p = found.nemenyi()
    differences = np.abs(found.mean_ranks[:, np.newaxis] - found.mean_ranks)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal((p < 0.1)[off], (differences > found.critical_difference)[off])
    assert (p < 0.1).sum() > 0


def test_signed_ranks_and_equivalence_of_a_comparison():
    pytest.importorskip("baycomp", reason="needs tanlearn[compare]")
    values = np.repeat(-100 * DEMSAR[:, :, np.newaxis], 2, axis=2)
    found = comparison(values).signed_ranks("A")
    assert [(one.first, one.second, one.n_datasets) for one in found] == [(name, "A", 14) for name in "BCD"]
    p = [signed_ranks_p(100 * (DEMSAR[:, 0] - DEMSAR[:, j])) for j in (1, 2, 3)]
    assert [one.p_value for one in found] == pytest.approx(p)
    assert [one.p_holm for one in found] == pytest.approx(oracle.holm(p))
    (b, *_) = comparison(values).equivalence("A", rope=1.0)
    (upward, *_) = comparison(-values, "auc").equivalence("A", rope=1.0, measure="auc")
    assert [one.rope for one in (b, *comparison(values).equivalence("A"))] == [1.0] * 4
    assert comparison(-DEMSAR[:, :2, np.newaxis], "auc").equivalence("A", measure="auc")[0].rope == 0.01
    assert (b.better, b.equal, b.worse) == pytest.approx((upward.better, upward.equal, upward.worse))
    assert b.better > b.worse


def test_wins_ties_and_losses():
    rng = np.random.default_rng(0)
    values = rng.normal(10.0, 0.1, (5, 2, 10))
    values[:2, 1] += 5.0
    values[2, 0] += 5.0
    values[4, 1] = values[4, 0]
    found = comparison(values).win_tie_loss()
    assert (found.wins[0, 1], found.ties[0, 1], found.losses[0, 1]) == (2, 2, 1)
    assert (found.wins[1, 0], found.ties[1, 0], found.losses[1, 0]) == (1, 2, 2)
    assert np.trace(found.wins + found.ties + found.losses) == 0
    by_mean = comparison(values).win_tie_loss(alpha=None)
    assert by_mean.ties[0, 1] == 1
    assert by_mean.wins[0, 1] + by_mean.losses[0, 1] == 4
    upward = comparison(1 - values / 100, "auc").win_tie_loss("auc")
    np.testing.assert_array_equal(upward.wins, found.wins)
    assert comparison(values[:, :, :1]).win_tie_loss().ties[0, 1] == 5


def test_wins_are_corrected_for_the_learners_compared_with_the_same_one():
    values = np.random.default_rng(3).normal(0.0, 0.7, (30, 4, 6)) + np.linspace(0.0, 1.2, 4)[:, np.newaxis]
    found = comparison(values).win_tie_loss()
    n_uncorrected = 0
    for j in range(4):
        for name in "ABCD":
            tests = [test for test in comparison(values).paired("ABCD"[j]) if test.first == name]
            wins = sum(test.p_holm < 0.05 and test.difference < 0 for test in tests)
            losses = sum(test.p_holm < 0.05 and test.difference > 0 for test in tests)
            i = "ABCD".index(name)
            assert (found.wins[i, j], found.losses[i, j]) == (wins, losses)
            assert found.ties[i, j] == len(tests) - wins - losses
            n_uncorrected += sum(test.p_value < 0.05 <= test.p_holm for test in tests)
    assert n_uncorrected > 0


def test_bad_names_are_explained():
    found = comparison(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"there is no learner 'a'\. .*The learners are: A, B"):
        found.paired("a")
    with pytest.raises(ValueError, match=r"there is no measure 'log-loss'\. Did you mean 'log_loss'\?"):
        found.mean("log-loss")
    with pytest.raises(
        ValueError, match=r"there is no measure 'errors'\. Did you mean 'error'\? The measures are: error, log_loss"
    ):
        found.ranks("errors")
    with pytest.raises(ValueError, match=r"there is no data set 'x'\. The data sets are: set 0, set 1"):
        found.values("x")


def test_missing_packages_are_named(monkeypatch):
    with pytest.raises(ImportError, match=r'the test needs no-such-package\. .*pip install "tanlearn\[compare\]"'):
        own.require("no_such_package", "the test")

"""Comparisons in this process: splits, measures, failures, progress and limits."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import LEARNERS, Learner
from tanlearn.comparison import cells, compare
from tanlearn.sources.datasets import Dataset, load_digits, load_npz

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "discretized"


@pytest.fixture(scope="module")
def weather():
    """Return 90 rows of three classes and two noisy copies of them."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [45, 30, 15])
    X = np.where(rng.random((90, 2)) < 0.2, rng.integers(0, 3, (90, 2)), y[:, np.newaxis])
    return Dataset("weather", X, np.array(["sun", "rain", "snow"])[y], ["a", "b"])


class Spy(NaiveBayesClassifier):
    """Naive Bayes that remembers what each of its kind was fitted to."""

    fits: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        Spy.fits.append((X, y))
        return super().fit(X, y, sample_weight)


@pytest.fixture
def spy():
    """Return the registry entry of a spy, and what it saw."""
    Spy.fits = []
    entry = Learner("Spy", "watches", "nobody", lambda random_state, n_epochs, n_jobs, encoder: Spy(encoder=encoder))
    return entry, Spy.fits


def failing(error):
    """Return the registry entry of a learner that raises."""

    def factory(random_state, n_epochs, n_jobs, encoder):
        raise error

    return Learner("Failing", "raises", "nobody", factory)


def test_result_agrees_with_fitting_by_hand(weather):
    rows = np.arange(90)
    split = replace(weather, folds=[(rows[::2], rows[1::2])], discrete_features=True)
    comparison = compare(split, ["nb ml"])
    (result,), (cell,) = comparison.means(), comparison.cells
    X, y = split.take(rows[::2])
    model = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True)).fit(X, y)
    assert result.test_error == pytest.approx(100 * (1 - model.score(*split.take(rows[1::2]))))
    assert (result.dataset, result.learner, result.n_parameters) == ("weather", "NB ML", model.n_parameters_)
    assert (result.n_folds, result.n_train, result.n_test) == (1, 45, 45)
    assert result.test_error_std is None
    assert result.failure is None
    assert result.fit_seconds > 0
    assert result.predict_microseconds > 0
    assert (cell.error, cell.n_edges, cell.seed) == (result.test_error, 0, 0)


def test_a_stratified_third_is_held_out(weather, spy):
    entry, fits = spy
    (result,) = compare(weather, [entry], n_folds=1).cells
    assert (result.n_train, result.n_test) == (60, 30)
    assert np.unique(fits[-1][1], return_counts=True)[1].tolist() == [20, 10, 30]


def test_warm_up_sees_a_few_rows_of_every_class(weather, spy):
    entry, fits = spy
    compare(weather, [entry], n_folds=1)
    assert len(fits) == 2
    assert np.unique(fits[0][1], return_counts=True)[1].tolist() == [10, 10, 10]


def test_seed_decides_the_split(weather, spy):
    entry, fits = spy
    for seed in (0, 0, 1):
        compare(weather, [entry], n_folds=1, random_state=seed)
    first, again, other = (fit[0] for fit in fits[1::2])
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_classes_that_are_rarer_than_folds_are_named(weather):
    labels = np.array(["sun"] * 88 + ["rain"] * 2)
    with pytest.warns(UserWarning, match="'rain', has 2 row") as caught:
        compare(replace(weather, y=labels), ["NB ML"], n_folds=5)
    assert [str(one.message) for one in caught if "class" in str(one.message)] == [
        "the least populated class, 'rain', has 2 row(s), so some of the 5 folds have no test "
        "row of this class. Use fewer folds or more rows."
    ]
    with pytest.raises(ValueError, match=r"at least one class must have 89 rows or more for 89 folds\. Use at most 88"):
        compare(replace(weather, y=labels), ["NB ML"], n_folds=89)


def test_cross_validation_averages_over_folds(weather, spy):
    entry, fits = spy
    (result,) = compare(weather, [entry], n_folds=3).means()
    errors = []
    for X, y in fits[1:]:
        # Rows are equal in many places, so find the test rows by counting what is left.
        assert len(y) == 60
        model = NaiveBayesClassifier(encoder=TableEncoder()).fit(X, y)
        wrong = (model.predict(weather.X) != weather.y).sum() - (model.predict(X) != y).sum()
        errors.append(100 * wrong / 30)
    assert result.n_folds == 3
    assert result.test_error == pytest.approx(np.mean(errors))
    assert result.test_error_std == pytest.approx(np.std(errors, ddof=1))


def test_own_split_is_used_and_not_to_be_overruled(weather):
    rows = np.arange(90)
    split = replace(weather, folds=[(rows[:80], rows[80:]), (rows[10:], rows[:10])])
    (result,) = compare(split, ["NB ML"]).means()
    assert (result.n_folds, result.n_train, result.n_test) == (2, 80, 10)
    with pytest.raises(
        ValueError, match=r"n_folds must not be set, because weather has a predefined split .*\. Leave n_folds out"
    ):
        compare(split, ["NB ML"], n_folds=3)


@pytest.mark.parametrize(
    ("y", "learners", "message"),
    [
        (["sun"] * 90, ["NB ML"], "one class only"),
        (["sun"] * 90, [], "a comparison needs at least one learner"),
        (["sun", "rain"] * 45, ["NB MM"], "Did you mean 'NB ML'"),
        (["sun"] * 89 + ["rain"], ["NB ML"], "least populated class, 'rain', has 1 row"),
    ],
)
def test_what_cannot_be_compared_is_refused(weather, y, learners, message):
    with pytest.raises(ValueError, match=message):
        compare(replace(weather, y=np.array(y)), learners, n_folds=1)


def test_a_failing_learner_leaves_its_reason_and_the_others_go_on(weather):
    X = weather.X.astype(float)
    X[::5, 0] = np.nan
    learners = ["Pseudo-TAN HYB", failing(RuntimeError("no luck")), "NB ML"]
    table = replace(weather, X=X, discrete_features=True)
    with pytest.warns(
        FitFailedWarning, match=r"2 of 3 cells failed. The first is weather, Pseudo-TAN HYB, .* learners .*: Failing"
    ):
        hybrid, broken, bayes = compare(table, learners, n_folds=1, n_epochs=2).cells
    assert "complete rows only" in hybrid.failure
    assert broken.failure == "RuntimeError: no luck"
    assert (hybrid.error, hybrid.fit_seconds, hybrid.n_parameters) == (None, None, None)
    assert bayes.failure is None
    assert bayes.error < 50


@pytest.mark.parametrize("name", ["NB ML", "TAN Subset HYB"])
def test_progress_starts_with_the_warm_up_and_ends_at_one(weather, name):
    shares = []
    compare(weather, [name], n_folds=2, n_epochs=4, progress=shares.append)
    assert {(state.dataset, state.learner) for state in shares} == {("weather", name)}
    first, *others = [state.share for state in shares]
    assert first is None
    assert others == sorted(others)
    expected = {"NB ML": {0, 0.5, 1}, "TAN Subset HYB": {k / 8 for k in range(9)}}
    assert set(others) == expected[name]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_progress_ends_at_one_for_a_learner_that_fails(weather):
    shares = []
    compare(weather, [failing(ValueError("no"))], progress=lambda state: shares.append(state.share))
    assert (shares[0], shares[-1]) == (None, 1.0)


def test_what_progress_answers_stops_nothing(weather):
    stopped, free = (
        compare(weather, ["TAN Subset HYB"], n_folds=1, n_epochs=5, progress=progress).cells[0]
        for progress in (lambda state: True, False)
    )
    assert (stopped.error, stopped.n_iterations) == (free.error, 5)


def test_epochs_and_threads_reach_the_learner(weather):
    seen = []

    def factory(random_state, n_epochs, n_jobs, encoder):
        seen.append((random_state, n_epochs, n_jobs, encoder.n_jobs))
        return LEARNERS["NB ML"].factory(random_state, n_epochs, n_jobs, encoder)

    compare(weather, [Learner("x", "x", "x", factory)], n_folds=1, n_repeats=2, random_state=3, n_epochs=9, n_jobs=1)
    measured = [call for call in seen if call[0] is not None]  # the others identify the settings
    assert measured == [(0, 2, 1, 1), (3, 9, 1, 1), (4, 9, 1, 1)]


def test_threads_are_shared_between_folds_and_learner(weather):
    seen = []

    def factory(random_state, n_epochs, n_jobs, encoder):
        if encoder is not None:
            seen.append((n_jobs, encoder.n_jobs))
        return LEARNERS["NB ML"].factory(random_state, n_epochs, n_jobs, encoder)

    compare(weather, [Learner("x", "x", "x", factory)], n_folds=3, n_jobs=6)
    assert set(seen) == {(2, 2)}
    seen.clear()
    compare(weather, [Learner("x", "x", "x", factory)], n_folds=3)
    assert set(seen) == {(None, None)}


def test_results_do_not_depend_on_threads(weather):
    def measures(n_jobs):
        learners = ["NB ML", "TAN-CMI ML", "TAN Subset HYB"]
        found = compare(weather, learners, n_folds=3, n_repeats=2, n_epochs=3, n_jobs=n_jobs)
        return [replace(cell, fit_seconds=None, predict_seconds=None) for cell in found.cells]

    assert measures(3) == measures(None)
    assert len({cell.error for cell in measures(None)}) > 1


def test_shares_of_folds_side_by_side_add_up(weather):
    shares = []
    compare(
        weather,
        ["TAN Subset HYB"],
        n_folds=3,
        n_epochs=4,
        n_jobs=3,
        progress=lambda state: shares.append(state.share),
    )
    first, *others = shares
    assert (first, others[-1]) == (None, 1.0)
    assert others == sorted(others)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_results_are_reported_as_they_come(weather):
    reported = []
    learners = ["NB ML", failing(ValueError("no")), "TAN-CMI ML"]
    comparison = compare(weather, learners, n_folds=2, finished=reported.append)
    assert tuple(reported) == comparison.cells


def test_ctrl_c_leaves_what_was_reported_and_warnings(weather):
    class Interrupted(NaiveBayesClassifier):
        def fit(self, X, y, sample_weight=None):
            if len(y) > 30:  # not in the warm-up
                warnings.warn("told in time", UserWarning, stacklevel=1)
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    entry = Learner("Slow", "waits", "nobody", lambda random_state, n_epochs, n_jobs, encoder: Interrupted())
    reported = []
    with pytest.warns(UserWarning, match="told in time"), pytest.raises(KeyboardInterrupt):
        compare(weather, ["NB ML", entry, "TAN-CMI ML"], n_folds=1, finished=reported.append)
    assert [result.learner for result in reported] == ["NB ML"]


@pytest.fixture
def clock(monkeypatch):
    """Return a learner each of whose fits takes ten seconds of a clock that nothing else moves."""
    now = [0.0]
    monkeypatch.setattr(cells.time, "time", lambda: now[0])

    class Slow(NaiveBayesClassifier):
        def fit(self, X, y, sample_weight=None):
            now[0] += 10
            return super().fit(X, y, sample_weight)

    return lambda name: Learner(name, "slow", "nobody", lambda random_state, n_epochs, n_jobs, encoder: Slow())


@pytest.mark.parametrize(("limit", "done"), [(1, 0), (30, 2), (31, 3), (70, 5), (71, 6), (1000, 6)])
def test_after_the_time_limit_nothing_is_begun(weather, clock, limit, done):
    """A learner's warm-up and folds begin at 0, 10, 20 and 30 seconds; what was begun before the limit is finished."""
    entries = [clock("a"), clock("b")]
    found = compare(weather, entries, n_folds=3, time_limit=limit)
    free = compare(weather, entries, n_folds=3)
    assert [(cell.key, cell.error) for cell in found.cells] == [(cell.key, cell.error) for cell in free.cells[:done]]


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_time_limit_is_above_zero(weather, limit):
    with pytest.raises(ValueError, match="time_limit must be a number of seconds above 0"):
        compare(weather, ["NB ML"], time_limit=limit)


def test_costs_rank_learners():
    names = ["NB ML", "TAN-OMI-CR ML", "TAN-CMI CG-CL", "TAN-OMI-MM HYB", "TAN All HYB", "NB CVX-MM"]
    assert [LEARNERS[name].cost for name in names] == [0, 1, 2, 3, 4, 5]


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")
@pytest.mark.parametrize(
    ("name", "errors"), [("letter", (25.89, 15.23)), ("satimage", (17.95, 11.90)), ("usps", (13.11, 8.74))]
)
def test_published_errors_of_maximum_likelihood(name, errors):
    results = compare(load_npz(DATA / f"{name}.npz"), ["NB ML", "TAN-CMI ML"]).means()
    assert tuple(round(result.test_error, 2) for result in results) == errors  # differentiable TAN, table 1


def test_no_threads_at_all_is_refused_before_any_learner_is_blamed():
    with pytest.raises(ValueError, match=r"n_jobs must be a positive number of threads, .* got 0"):
        compare(load_digits(), ["NB ML"], n_jobs=0)


def test_a_warm_up_on_few_rows_warns_of_nothing():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare(load_digits(), ["NB ML"], n_folds=1)
    assert [str(warning.message) for warning in caught] == []


def test_what_all_learners_warn_of_is_reported_once():
    rng = np.random.default_rng(0)
    table = Dataset("noise", rng.normal(size=(90, 2)), np.arange(90) % 2, ["a", "b"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare(table, ["NB ML", "TAN-CMI ML"], n_folds=2)
    (warning,) = caught
    assert str(warning.message).startswith(
        "noise (repeat 1, fold 1): discretization left a single interval in 2 column(s)"
    )


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_warnings_of_several_data_sets_are_those_of_the_first_fold_that_warns(n_jobs):
    """Whatever the threads finish first."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    tables = {name: (rng.normal(size=(90, 2)), y) for name in ("one", "two")}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare({"clear": (np.stack([y, y], axis=1) + 0.5, y), **tables}, ["NB ML"], n_folds=3, n_jobs=n_jobs)
    (warning,) = caught
    assert str(warning.message).startswith("one (repeat 1, fold 1): discretization left")
    assert str(warning.message).endswith(" Also in two.")

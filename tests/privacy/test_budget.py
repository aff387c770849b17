"""Budgets add up losses exactly, releases add noise to counts that it can protect, and refuse all others."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    NaiveBayesClassifier,
    PairCounts,
    PrivacyBudget,
    Structure,
    TableCounts,
    TableEncoder,
    load,
)
from tanlearn.baselines import ChowLiu
from tanlearn.counts.added_noise import AddedNoise
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.files import archive
from tanlearn.files.regular_files import COUNTS

COLUMNS = {"age": [20, 40, 60], "town": ["Graz", "Linz", "Wien"], "late": [False, True]}
CLASSES = ["no", "yes"]
#: Noise with a seed has no guarantee, and only tests and benchmarks use it.
SEEDED = "ignore:random_state repeats:UserWarning"


def rows(n=300, seed=0):
    """Return columns of numbers, strings and booleans, with missing values, and classes."""
    rng = np.random.default_rng(seed)
    town, age = rng.choice(COLUMNS["town"], n), rng.integers(1, 90, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    y = np.where((age > 40) | (town == "Wien"), "yes", "no")
    return pd.DataFrame({"age": age, "town": town, "late": rng.random(n) < 0.5}), y


def declared(**options):
    return TableEncoder(**options).declare(COLUMNS)


def counted(*, pairs=True, encoder=None):
    encoder = declared() if encoder is None else encoder
    return TableCounts.of_encoder(encoder, CLASSES, pairs=pairs).update(*rows())


def test_losses_add_up_as_decimal_numbers():
    budget = PrivacyBudget(0.3, 1e-6)
    for _ in range(3):
        budget.spend(0.1, 2e-7)
    assert (budget.spent_epsilon, budget.spent_delta) == (0.3, 6e-7)
    with pytest.raises(ValueError, match=r"epsilon must be at most the remaining budget, 0.0 of 0.3, got 1e-09"):
        budget.spend(1e-9)
    assert repr(budget) == "PrivacyBudget(epsilon=0.3, delta=1e-06, spent_epsilon=0.3, spent_delta=6e-07)"


def test_what_exceeds_a_budget_spends_nothing():
    budget = PrivacyBudget(1)
    budget.spend(np.float64(0.75))
    for loss in ((0.5, 0), (0.1, 1e-9)):
        with pytest.raises(ValueError, match="must be at most the remaining budget"):
            budget.spend(*loss)
    with pytest.raises(
        ValueError, match=r"epsilon must be at most the remaining budget, 0\.25 of 1\.0, got 0\.5\. Pass"
    ):
        budget.release(counted(), epsilon=0.5)
    assert (budget.spent_epsilon, budget.releases) == (0.75, [])
    budget.spend(Fraction(1, 4))
    with pytest.raises(ValueError, match=r"the privacy budget \(epsilon 1\) is spent, so .*\. Use the counts"):
        budget.release(counted())


@pytest.mark.parametrize(
    ("epsilon", "delta", "error", "message"),
    [
        (
            0,
            0,
            ValueError,
            "epsilon must be at least 1e-12, got 0. Pass, for example, 0.5; smaller values protect better.",
        ),
        (1e-13, 0, ValueError, "epsilon must be at least 1e-12, got 1e-13."),
        (-1.5, 0, ValueError, "epsilon must be at least 1e-12, got -1.5."),
        (1, 1, ValueError, "delta must be at least 0 and below 1, got 1. Pass 0 or, for example, 1e-6."),
        (1, -0.1, ValueError, "delta must be at least 0 and below 1, got -0.1."),
        (np.inf, 0, ValueError, "epsilon must be finite, got inf."),
        (1, np.nan, ValueError, "delta must be finite, got nan."),
        ("1", 0, TypeError, "epsilon must be a number, got '1'."),
        (True, 0, TypeError, "epsilon must be a number, got True."),
    ],
)
def test_losses_out_of_range_are_refused(epsilon, delta, error, message):
    with pytest.raises(error, match=re.escape(message)):
        PrivacyBudget(epsilon, delta)
    with pytest.raises(error, match=re.escape(message)):
        PrivacyBudget(5, 0.5).spend(epsilon, delta)


@pytest.mark.parametrize(
    ("pairs", "delta", "mechanism", "k"),
    [(False, 0, "discrete Laplace", 4), (True, 0, "discrete Laplace", 7), (False, 1e-9, "discrete Laplace", 4)],
)
def test_noise_of_a_release_follows_from_loss_and_changed_counts(pairs, delta, mechanism, k):
    budget = PrivacyBudget(2, delta)
    released = budget.release(counted(pairs=pairs), epsilon=0.5)
    q = 0.5 / k
    expected = np.sqrt(2 * np.exp(-q)) / (1 - np.exp(-q))
    assert released.noise == tuple(budget.releases)
    assert released.noise[0].standard_deviation == pytest.approx(expected, rel=1e-12)
    assert (released.noise[0].mechanism, released.noise[0].epsilon, released.noise[0].delta) == (mechanism, 0.5, 0.0)
    assert (budget.spent_epsilon, budget.spent_delta) == (0.5, 0.0)  # Laplace noise spends no delta


def test_gaussian_noise_is_used_where_its_variance_is_lower():
    columns = {f"x{i}": ["a", "b"] for i in range(12)}
    counts = TableCounts.of_encoder(TableEncoder().declare(columns), CLASSES)
    assert PrivacyBudget(1, 1e-6).release(counts).noise[0].mechanism == "discrete Gaussian"  # 79 changed counts
    budget = PrivacyBudget(1, 1e-6)
    first = budget.release(counts, epsilon=0.3).noise[0]
    assert (first.mechanism, first.delta) == ("discrete Gaussian", 3e-7)  # the same part as of epsilon
    second = budget.release(counts).noise[0]
    assert (second.epsilon, second.delta) == (0.7, 7e-7)
    assert (budget.spent_epsilon, budget.spent_delta) == (1.0, 1e-6)
    third = PrivacyBudget(1, 1e-6).release(counts, delta=0).noise[0]
    assert (third.mechanism, third.delta) == ("discrete Laplace", 0.0)


@pytest.mark.filterwarnings(SEEDED)
@pytest.mark.parametrize("delta", [0, 0.01])
def test_seeds_repeat_noise(delta):
    counts = counted()
    one, same, other = (PrivacyBudget(0.5, delta).release(counts, random_state=seed) for seed in (1, np.int64(1), 2))
    assert one == same
    assert one != other
    assert one != counts


def test_seeds_are_warned_about():
    with pytest.warns(UserWarning, match="these counts have no privacy guarantee. Use random_state=None"):
        PrivacyBudget(1).release(counted(), random_state=0)
    for wrong in (1.5, True, np.random.default_rng(0)):
        budget = PrivacyBudget(1)
        with pytest.raises(TypeError, match="random_state must be None or an integer"):
            budget.release(counted(), random_state=wrong)
        assert budget.spent_epsilon == 0


@pytest.mark.filterwarnings(SEEDED)
def test_released_counts_are_those_of_rows_plus_noise_and_rows_stay():
    counts = counted()
    before = counts.counts.arrays()["pairs"].copy()
    released = PrivacyBudget(10**6).release(counts, random_state=0)  # noise of 0, almost surely
    assert released == counts
    assert released.counts is not counts.counts
    assert not counts.noise
    np.testing.assert_array_equal(counts.counts.arrays()["pairs"], before)


@pytest.mark.filterwarnings(SEEDED)
def test_structures_select_families():
    counts, structure = counted(), Structure([[-1], [0], [1]])
    released = PrivacyBudget(10**6).release(counts, structure=structure, random_state=0)
    assert isinstance(released.counts, FamilyCounts)
    model = BayesNetClassifier(structure=structure)
    expected = clone(model).from_counts(counts)
    np.testing.assert_array_equal(model.from_counts(released).tables_.cells, expected.tables_.cells)
    again = PrivacyBudget(1).release(counted(pairs=False), structure=Structure.naive_bayes(3))
    assert again.noise[0].standard_deviation < PrivacyBudget(1).release(counts).noise[0].standard_deviation
    with pytest.raises(ValueError, match=r"the counts are counts of the families of .* Pass counts of pairs, or leave"):
        PrivacyBudget(1).release(counted(pairs=False), structure=structure)
    with pytest.raises(ValueError, match="several parents need counts of three or more values"):
        PrivacyBudget(1).release(counts, structure=Structure([[-1, -1], [0, -1], [0, 1]]))
    with pytest.raises(ValueError, match="structure"):
        PrivacyBudget(1).release(counts, structure=Structure.naive_bayes(4))


@pytest.mark.filterwarnings(SEEDED)
@pytest.mark.parametrize("model", [NaiveBayesClassifier(), BayesNetClassifier(structure=ChowLiu())])
def test_classifiers_of_released_counts_predict_and_are_saved(model, tmp_path):
    X, y = rows()
    released = PrivacyBudget(20).release(counted(), random_state=0)
    model = clone(model).from_counts(released)
    assert model.score(X, y) > 0.6
    model.save(tmp_path / "model.tan")
    np.testing.assert_array_equal(load(tmp_path / "model.tan").predict_proba(X), model.predict_proba(X))


def test_any_loss_gives_counts_of_all_classes():
    empty = TableCounts.of_encoder(declared(), CLASSES)
    for epsilon in (1e-6, 1e-3, 100):
        released = PrivacyBudget(epsilon).release(empty)
        assert released.counts.class_counts.min() >= 1
        assert min(array.min() for array in released.counts.arrays().values()) >= 0
        assert NaiveBayesClassifier().from_counts(released).predict(rows(5)[0]).shape == (5,)


def test_values_read_from_rows_are_refused():
    X, y = rows()
    fitted = TableEncoder().fit(X, y)
    budget = PrivacyBudget(1)
    for counts in (
        TableCounts.of_encoder(fitted, CLASSES).update(X, y),
        TableCounts.of_source([(X, y)]),
        TableCounts.of_source(X.assign(sold=y), "sold", like=NaiveBayesClassifier().fit(X, y)),
    ):
        with pytest.raises(
            ValueError, match=r"were not declared\. .*TableEncoder\(\)\.declare\(\{\.\.\.\}\), classes\)"
        ):
            budget.release(counts)
    assert budget.spent_epsilon == 0
    released = budget.release(TableCounts.of_encoder(fitted, CLASSES).update(X, y), encoder_is_public=True)
    assert released.encoder.value_ranges_ == [None] * 3  # those of the counted rows
    assert fitted.value_ranges_[0] == (X["age"].min(), X["age"].max())


def test_sources_are_counted_in_declared_columns():
    X, y = rows()
    like = TableCounts.of_encoder(declared(), CLASSES)
    counts = TableCounts.of_source(X.assign(sold=y), "sold", like=like, batch_rows=70)
    assert counts == counted()
    assert PrivacyBudget(1).release(counts).noise


def test_weights_are_refused():
    X, y = rows()
    weights = np.where(np.arange(len(y)) == 7, 2, 1)
    for counts in (
        TableCounts.of_encoder(declared(), CLASSES).update(X, y, weights),
        TableCounts.of_encoder(declared(), CLASSES).update(X, y, weights / 2),
        counted().merge(TableCounts.of_encoder(declared(), CLASSES).update(X, y, weights)),
        TableCounts.of_model(NaiveBayesClassifier().from_counts(counted())),
        TableCounts(counted().counts, encoder=declared(), classes=CLASSES),
    ):
        with pytest.raises(ValueError, match=r"may have weights, but noise protects only rows of weight 1. Count rows"):
            PrivacyBudget(1).release(counts)
    once = TableCounts.of_encoder(declared(), CLASSES).update(X, y, (weights == 1).astype(int))  # one row left out
    assert PrivacyBudget(1).release(once).noise


def test_other_counts_are_refused():
    X, y = rows()
    with pytest.raises(TypeError, match="counts must be a TableCounts, got PairCounts"):
        PrivacyBudget(1).release(PairCounts([2], 2))
    forest = BayesForestClassifier(n_estimators=2, weights=None, random_state=0).fit_batches([(X, y)])
    with pytest.raises(TypeError, match="contain only values that occur"):
        PrivacyBudget(1).release(TableCounts.of_model(forest), encoder_is_public=True)


def test_released_counts_take_no_rows_and_no_more_noise():
    released = PrivacyBudget(1).release(counted())
    with pytest.raises(
        ValueError, match="counts with noise for privacy cannot be updated, because more rows would be added without"
    ):
        released.update(*rows())
    with pytest.raises(ValueError, match="counts with noise cannot be added to counts without noise"):
        released.merge(counted())
    with pytest.raises(ValueError, match="counts with noise cannot be added to counts without noise"):
        counted().merge(released)
    with pytest.raises(ValueError, match="already have noise"):
        PrivacyBudget(1).release(released)


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), BayesNetClassifier(structure=ChowLiu())])
def test_models_of_released_counts_take_no_rows(model, tmp_path):
    X, y = rows()
    released = PrivacyBudget(1).release(counted())
    model = clone(model).from_counts(released)
    model.save(tmp_path / "model.tan", counts=True)
    again = load(tmp_path / "model.tan")
    for own in (model, again):
        assert own.counts_.noise == released.noise == TableCounts.of_model(own).noise
        before = own.counts_.class_counts.tolist()
        with pytest.raises(
            ValueError,
            match="counts with noise for privacy cannot be updated, because more rows would be added without",
        ):
            own.partial_fit(X, y)
        assert own.counts_.class_counts.tolist() == before
    exact = clone(model).from_counts(counted())
    assert exact.partial_fit(X, y).counts_.class_counts.sum() == 600


def test_released_counts_of_several_sites_are_added():
    north, south = (PrivacyBudget(epsilon).release(counted()) for epsilon in (1, 2))
    total = north.counts.class_counts + south.counts.class_counts
    both = north.empty().merge(north).merge(south)
    assert both.counts.class_counts.tolist() == total.tolist()
    assert [own.epsilon for own in both.noise] == [1.0, 2.0]
    assert repr(both).endswith("noise='discrete Laplace', noise='discrete Laplace')")


def test_files_keep_declaration_and_noise(tmp_path):
    path = tmp_path / "own.counts"
    empty = TableCounts.of_encoder(declared(), CLASSES)
    empty.save(path)
    counts = TableCounts.load(path).update(*rows())
    assert counts == counted()
    counts.save(path)
    with pytest.raises(ValueError, match="may have weights"):  # but none had: the file says so
        PrivacyBudget(1).release(TableCounts(counts.counts, encoder=counts.encoder, classes=CLASSES))
    released = PrivacyBudget(1).release(TableCounts.load(path))
    released.save(path)
    assert TableCounts.load(path).noise == released.noise
    weighted = empty.empty().update(*rows(), np.full(300, 2))
    weighted.save(path)
    with pytest.raises(ValueError, match="may have weights"):
        PrivacyBudget(1).release(TableCounts.load(path))
    fitted = TableCounts.of_source([rows()])
    fitted.save(path)
    assert not {"declared", "noise"} & archive.unpack(path.read_bytes(), COUNTS)[0].keys()
    assert not TableCounts.load(path).encoder.is_declared_


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("declared", {"counts_rows_once": 1}, "must be true or false"),
        ("declared", True, "expected an object with the keys counts_rows_once"),
        ("noise", {}, "noise must be a list of objects"),
        ("noise", [{"epsilon": 1.0}], "noise must be a list of objects"),
        ("noise", [{"mechanism": "x", "standard_deviation": 1, "epsilon": 1.0, "delta": 0.0}], "finite numbers"),
        ("noise", [{"mechanism": 3, "standard_deviation": 1.0, "epsilon": 1.0, "delta": 0.0}], "must be a string"),
    ],
)
def test_forged_records_are_refused(name, value, message, tmp_path):
    path = tmp_path / "own.counts"
    counted().save(path)
    description, arrays = archive.unpack(path.read_bytes(), COUNTS)
    description[name] = value
    path.write_bytes(archive.pack(description, arrays, COUNTS))
    with pytest.raises(ValueError, match=f"cannot be loaded.*{message}"):
        TableCounts.load(path)


def test_records_are_equal_by_value():
    assert AddedNoise("discrete Laplace", 2.0, 1.0, 0.0) == AddedNoise("discrete Laplace", 2.0, 1.0, 0.0)

"""TANDensity: scores, contributions, surprises, samples and queries against enumeration, and its errors."""

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from oracles import latent_classes as naive
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from tanlearn import QuantileDiscretizer, TableEncoder, TANDensity
from tanlearn.sources.columns import read_columns

RNG = np.random.default_rng(0)
X = np.array([[str(v) for v in row] for row in RNG.integers(0, 2, (60, 3))], dtype=object)
X[:, 2] = np.where(RNG.random(60) < 0.8, X[:, 1], X[:, 2])
ROWS = [["0", "1", "0"], ["1", None, "1"], [None, None, None], ["1", "0", "0"], [None, "0", None]]
MIXED = pd.DataFrame({"kind": RNG.choice(["a", "b"], 200), "size": RNG.normal(size=200)})
MIXED["size"] += 5 * (MIXED["kind"] == "a")
RANDOM = {
    "check_sample_weight_equivalence_on_dense_data": (
        "starts of latent classes and hidden values are drawn per row, so repeating a row changes the draws"
    )
}
FOUR = TableEncoder(discretizer=QuantileDiscretizer(max_bins=4))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:discretization left")
@parametrize_with_checks([TANDensity(), TANDensity(n_components=2)], expected_failed_checks=lambda _: RANDOM)
def test_estimator_checks(estimator, check):
    check(estimator)


def given(model):
    """Return what the oracles need of a fitted density."""
    n_states = model.encoder_.n_states_.tolist()
    return model.tables_.cells, model.structure_.parents.tolist(), n_states, model.n_components_


def codes_of(model, rows):
    """Return encoded rows as lists, with -1 for missing values."""
    codes = model.encoder_.encode_columns(read_columns(rows)).T
    return np.where(codes == 255, -1, codes.astype(int)).tolist()


@pytest.fixture(params=[1, 3])
def model(request):
    return TANDensity(n_components=request.param, random_state=0).fit(X)


def test_scores_are_log_probabilities(model):
    expected = [naive.evidence(sample, *given(model)) for sample in codes_of(model, ROWS)]
    np.testing.assert_allclose(model.score_samples(ROWS), expected, atol=1e-12)
    every = [list(row) for row in itertools.product("01", repeat=3)]
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1)


def test_contributions_are_those_of_one_value_after_the_other(model):
    found = model.contributions(ROWS)
    np.testing.assert_allclose(found.sum(axis=1), model.score_samples(ROWS), atol=1e-12)
    for sample, own in zip(codes_of(model, ROWS), found, strict=True):
        seen, before = [-1] * 3, 0.0
        for i in model.structure_.order.tolist():
            seen[i] = sample[i]
            after = naive.evidence(seen, *given(model))
            assert own[i] == pytest.approx(after - before, abs=1e-12)
            before = after


def test_surprises_are_those_given_all_other_values(model):
    for sample, own in zip(codes_of(model, ROWS), model.surprises(ROWS), strict=True):
        for i, value in enumerate(sample):
            hidden = [*sample[:i], -1, *sample[i + 1 :]]
            p = 1.0 if value < 0 else naive.value_probabilities(hidden, i, *given(model))[value]
            assert own[i] == pytest.approx(-math.log(p), abs=1e-12)


def test_conditional_probabilities(model):
    for sample in ([-1, 1, -1], [0, 1, -1], [-1, -1, -1]):
        known = {i: str(value) for i, value in enumerate(sample) if value >= 0}
        found = model.conditional(2, known)
        expected = naive.value_probabilities(sample, 2, *given(model))
        assert list(found) == ["0", "1"]
        np.testing.assert_allclose(list(found.values()), expected)


@pytest.mark.parametrize("features", [[2, 0], [0, 1, 2], [1]])
@pytest.mark.parametrize("sample", [[-1, -1, -1], [-1, 1, -1], [0, -1, -1]])
def test_joint_conditional_probabilities(model, sample, features):
    features = [i for i in features if sample[i] < 0] or [0]
    found = model.conditional(features, {i: str(value) for i, value in enumerate(sample) if value >= 0})
    expected = naive.joint_probabilities(sample, features, *given(model))
    assert list(found) == [tuple(map(str, values)) for values in expected]
    np.testing.assert_allclose(list(found.values()), list(expected.values()))


def test_joint_queries_of_intervals_in_blocks(monkeypatch):
    density = TANDensity(n_components=2, encoder=FOUR, random_state=0).fit(MIXED)
    found = density.conditional(["size", "kind"])
    assert len(found) == 8
    assert sum(found.values()) == pytest.approx(1)
    for kind, p in density.conditional("kind").items():
        given_kind = density.conditional("size", {"kind": kind})
        for size, own in given_kind.items():
            assert found[size, kind] == pytest.approx(p * own)
    monkeypatch.setattr("tanlearn.density.queries._BLOCK_CODES", 3)
    assert density.conditional(["size", "kind"]) == pytest.approx(found)


def test_samples_have_the_probabilities_of_the_network(model):
    drawn = ["".join(row) for row in model.sample(4000, random_state=0)]
    for row in itertools.product("01", repeat=3):
        p = math.exp(model.score_samples([list(row)])[0])
        assert drawn.count("".join(row)) / 4000 == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 4000))


def test_the_density_of_numbers_integrates_to_one_over_the_training_range():
    density = TANDensity(n_components=2, encoder=FOUR, random_state=0).fit(MIXED)
    low, high = density.encoder_.value_ranges_[1]
    middle = np.linspace(low, high, 20_001)[:-1] + (high - low) / 40_000
    total = 0.0
    for kind in ("a", "b"):
        rows = pd.DataFrame({"kind": kind, "size": middle})
        total += np.exp(density.score_samples(rows)).mean() * (high - low)
    assert total == pytest.approx(1, abs=1e-3)


def test_units_of_a_column_shift_the_log_density():
    wide = MIXED.assign(size=1000 * MIXED["size"])
    one, other = (TANDensity(n_components=1, encoder=FOUR).fit(table) for table in (MIXED, wide))
    np.testing.assert_allclose(other.score_samples(wide), one.score_samples(MIXED) - math.log(1000))
    assert (one.predict(MIXED) == other.predict(wide)).all()


def test_new_values_lower_the_density_and_take_the_contribution():
    density = TANDensity(n_components=2, encoder=FOUR, random_state=0).fit(MIXED)
    rows = pd.DataFrame({"kind": ["a", "c", "a", "c"], "size": [5.0, 5.0, 30.0, 30.0]})
    scores, parts = density.score_samples(rows), density.contributions(rows)
    assert scores[0] > scores[1] > scores[3]
    assert scores[0] > scores[2] > scores[3]
    np.testing.assert_allclose(parts.sum(axis=1), scores)
    assert parts[1, 0] < parts[0, 0]
    assert parts[2, 1] < parts[0, 1]
    assert density.predict(rows).tolist() == [1, -1, -1, -1]


def test_missing_values_are_neither_usual_nor_unusual():
    density = TANDensity(n_components=1, encoder=FOUR).fit(MIXED)
    rows = pd.DataFrame({"kind": [None], "size": [np.nan]}).astype({"kind": object})
    mean = density.contributions(MIXED).mean(axis=0)
    assert density.score_samples(rows)[0] == pytest.approx(0)
    assert density.decision_function(rows)[0] == pytest.approx(mean.sum() - density.offset_)


def test_contamination_is_the_fraction_of_outliers():
    density = TANDensity(n_components=1, contamination=0.1).fit(MIXED)
    assert (density.predict(MIXED) == -1).mean() == pytest.approx(0.1, abs=0.02)
    np.testing.assert_array_equal(density.fit_predict(MIXED), density.predict(MIXED))
    odd = pd.DataFrame({"kind": ["b", "a"], "size": [6.0, 5.0]})  # sizes of "a" are about 5
    assert density.decision_function(odd)[0] < density.decision_function(odd)[1]
    assert density.surprises(odd)[0].min() > 1


def test_intervals_of_queries_and_samples():
    density = TANDensity(n_components=2, encoder=FOUR, random_state=0).fit(MIXED)
    found = density.conditional("size", {"kind": "a"})
    assert next(low for low, _ in found) == -np.inf
    assert [high for _, high in found][-1] == np.inf
    assert sum(found.values()) == pytest.approx(1)
    assert sum(list(found.values())[2:]) > 0.9
    assert set(density.sample(50, random_state=0)[:, 1]) <= set(MIXED["size"])
    assert density.conditional("kind", {"size": 5.1})["a"] > 0.9


def test_blocks_of_rows_change_nothing(monkeypatch):
    density = TANDensity(n_components=2, random_state=0).fit(X)
    expected = density.contributions(X)
    monkeypatch.setattr("tanlearn.density.density._BLOCK_NUMBERS", 20)
    np.testing.assert_allclose(density.contributions(X), expected)


def test_copies_score_the_same():
    density = TANDensity(n_components=2, random_state=0).fit(MIXED)
    other = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(other.decision_function(MIXED), density.decision_function(MIXED))


def test_joint_queries_of_too_many_values_are_refused(monkeypatch):
    density = TANDensity(n_components=1, encoder=FOUR).fit(MIXED)
    monkeypatch.setattr("tanlearn.density.queries.MOST_COMBINATIONS", 7)
    with pytest.raises(ValueError, match=r"at most 7 .* 8 combinations of values \(2 x 4\).*Query fewer columns"):
        density.conditional(["kind", "size"])


def test_invalid_queries():
    density = TANDensity(n_components=1).fit(MIXED)
    with pytest.raises(ValueError, match=r"there is no column 'colour'. Pass one of the columns 'kind', 'size'"):
        density.conditional("colour")
    with pytest.raises(ValueError, match="given must not contain 'kind', because its probabilities are requested"):
        density.conditional("kind", {0: "a"})
    with pytest.raises(ValueError, match="given must not contain 'size', because"):
        density.conditional(["kind", "size"], {"size": 1.0})
    for wrong in ([], ["kind", "kind"], ["kind", 0]):
        with pytest.raises(ValueError, match="a list of different columns"):
            density.conditional(wrong)
    with pytest.raises(ValueError, match="'c'"):
        density.conditional("size", {"kind": "c"})
    with pytest.raises(ValueError, match=r"^there is no column 3\. Pass a column number from 0 to 2\.$"):
        TANDensity(n_components=1).fit(X).conditional(3)
    with pytest.raises(ValueError, match="'contamination' parameter of TANDensity"):
        TANDensity(contamination=0.7).fit(X)
    with pytest.raises(NotFittedError):
        TANDensity().score_samples(X)

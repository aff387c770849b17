"""Likelihood with monotone log odds: against the formula of isotonic regression, and exactly monotone predictions."""

import itertools

import numpy as np
import pandas as pd
import pytest
from oracles.isotonic import isotonic_regression

from tanlearn import (
    BayesNetClassifier,
    EncodedData,
    Knowledge,
    MonotoneLikelihood,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    Structure,
    TableEncoder,
    load,
    save,
)
from tanlearn.baselines import ChowLiu


def ordered_rows(seed, n=60, n_states=(4, 6, 3, 5), n_classes=2, missing=0.0, weights=None):
    """Return rows of ordered codes that depend on the class, mostly not in a monotone way."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.stack([(rng.integers(0, k, n) + y * rng.integers(0, k)) % k for k in n_states], axis=1)
    X[rng.random(X.shape) < missing] = -1
    weight = None if weights is None else rng.integers(1, 4, n)
    return EncodedData.from_codes(X, y, n_states=n_states, n_classes=n_classes, sample_weight=weight, is_ordered=True)


def fitted(data, **options):
    """Return the tables of naive Bayes."""
    return MonotoneLikelihood(**options).fit(Structure.naive_bayes(data.n_features), data, np.random.default_rng(0))


@pytest.mark.parametrize("weights", [None, "integer"])
@pytest.mark.parametrize("seed", range(6))
def test_cpts_are_those_of_the_formula(seed, weights):
    data = ordered_rows(seed, missing=0.1, weights=weights)
    tables = fitted(data, increasing=[0, 1], decreasing=[3], alpha=0.5)
    for i, direction in ((0, 1), (1, 1), (2, 0), (3, -1)):
        counts = np.full((data.n_states[i], 2), 0.5)
        for value, c, weight in zip(data.codes[i].tolist(), data.y, data.weights, strict=True):
            if value < data.n_states[i]:
                counts[value, c] += weight
        phi = counts[:, 1] / counts.sum(axis=1)
        if direction:
            total = counts.sum(axis=1)[::direction].tolist()
            phi = np.array(isotonic_regression(phi[::direction].tolist(), total))[::direction]
        expected = counts.sum(axis=1)[:, np.newaxis] * np.stack([1 - phi, phi], axis=1) / counts.sum(axis=0)
        assert expected.sum(axis=0) == pytest.approx(1)
        assert tables.probabilities(i) == pytest.approx(expected, rel=1e-9)


def test_no_other_monotone_cpt_is_more_likely():
    rng = np.random.default_rng(0)
    data = ordered_rows(1, n_states=(5,))
    counts = np.zeros((5, 2))
    np.add.at(counts, (data.codes[0], data.y), 1)
    best = fitted(data, increasing=[0], alpha=1e-9).probabilities(0)
    likelihood = lambda p: float((counts * np.log(p)).sum())  # noqa: E731
    for _ in range(2000):
        p = best * np.exp(rng.normal(scale=rng.choice([0.01, 0.3]), size=best.shape))
        p /= p.sum(axis=0)
        if (np.diff(p[:, 1] / p[:, 0]) >= 0).all():
            assert likelihood(p) <= likelihood(best) + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_log_odds_of_all_pairs_of_values_are_exactly_monotone(seed):
    data = ordered_rows(seed)
    directions = {0: 1, 1: -1, 3: 1}
    learner = MonotoneLikelihood(increasing=[0, 3], decreasing=[1])
    model = NaiveBayesClassifier(parameters=learner).fit_encoded(data)
    every = np.array(list(itertools.product(*map(range, data.n_states))))
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=data.n_states).codes
    scores = model.model_.log_joint(codes)
    log_odds = (scores[:, 1] - scores[:, 0]).reshape(data.n_states)
    n_equal = 0
    for axis, direction in directions.items():
        values = np.moveaxis(log_odds, axis, 0) * direction
        for low, high in itertools.combinations(range(len(values)), 2):
            assert (values[high] >= values[low]).all()  # without any tolerance
            n_equal += (values[high] == values[low]).all()
    assert n_equal > 0  # pooled values are exactly equal
    if seed == 0:
        assert not (np.diff(log_odds, axis=2) >= 0).all()  # feature 2 is free


def test_frames_names_missing_categories_and_files(tmp_path):
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(20, 80, 300), rng.uniform(0, 10, 300)
    y = np.where(rng.random(300) < dose / 20 + (age > 50) * 0.2, "well", "ill")
    dose[rng.random(300) < 0.2] = np.nan
    X = pd.DataFrame({"age": age, "dose": dose, "ward": rng.choice(["a", "b"], 300)})
    encoder = TableEncoder(discretizer=QuantileDiscretizer(max_bins=8), handle_missing="category")
    learner = MonotoneLikelihood(increasing=["dose"], decreasing=["age"])
    model = NaiveBayesClassifier(parameters=learner, encoder=encoder).fit(X, y)
    plain = NaiveBayesClassifier(encoder=encoder).fit(X, y)
    assert model.tables_.probabilities(1)[-1] == pytest.approx(plain.tables_.probabilities(1)[-1])  # missing
    row = X.iloc[[0] * 50].assign(dose=np.linspace(-1, 11, 50))
    scores = model.predict_joint_log_proba(row)
    assert (np.diff(scores[:, 1] - scores[:, 0]) >= 0).all()
    assert (np.diff(model.predict_proba(row)[:, 1]) >= -1e-15).all()
    save(model, tmp_path / "model.tan")
    assert load(tmp_path / "model.tan").parameters.get_params() == learner.get_params()
    with pytest.raises(ValueError, match=r"increasing\[0\] is X column 'ward', which has no order"):
        NaiveBayesClassifier(parameters=MonotoneLikelihood(increasing=["ward"]), encoder=encoder).fit(X, y)
    with pytest.raises(ValueError, match=r"decreasing\[0\] contains 'agee', .* Did you mean 'age'\?"):
        NaiveBayesClassifier(parameters=MonotoneLikelihood(decreasing=["agee"]), encoder=encoder).fit(X, y)


def test_monotone_columns_of_trees_have_no_edges():
    data = ordered_rows(2, 200)
    learner = MonotoneLikelihood(increasing=[0])
    with pytest.raises(ValueError, match=r"increasing\[0\] is feature 0, which has an edge to another column"):
        learner.fit(Structure([-1, 0, -1, -1]), data, np.random.default_rng(0))
    with pytest.raises(ValueError, match="which has an edge to another column"):
        learner.fit(Structure([1, -1, -1, -1]), data, np.random.default_rng(0))
    alone = Knowledge(forbidden=[pair for j in (1, 2, 3) for pair in ((0, j), (j, 0))])
    model = BayesNetClassifier(structure=ChowLiu(knowledge=alone), parameters=learner).fit_encoded(data)
    assert model.structure_.n_edges == 2


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="need exactly two classes, but the data have 3"):
        fitted(ordered_rows(0, n_classes=3), increasing=[0])
    with pytest.raises(ValueError, match="0 is listed twice in increasing and decreasing"):
        fitted(ordered_rows(0), increasing=[0], decreasing=[0])
    with pytest.raises(ValueError, match="The 'alpha' parameter of MonotoneLikelihood must be a float in the range"):
        fitted(ordered_rows(0), alpha=0.0)
    unordered = EncodedData.from_codes([[0], [1], [1]], [0, 1, 1])
    with pytest.raises(ValueError, match=r"EncodedData.from_codes\(..., is_ordered=...\)"):
        fitted(unordered, increasing=[0])


def test_without_monotone_columns_it_is_maximum_likelihood():
    data = ordered_rows(0)
    plain = NaiveBayesClassifier().fit_encoded(data)
    assert fitted(data).cells == pytest.approx(plain.tables_.cells, abs=1e-12)

"""Fixed CPTs: kept whatever the rows, with all other CPTs as without them, and predictions by enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    EncodedData,
    FixedCPTs,
    HierarchicalSmoothing,
    Knowledge,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableCounts,
    load,
    save,
)
from tanlearn.baselines import ChowLiu

N_STATES, CHAIN = (3, 2, 4), Structure([-1, 0, 1])


def rows(seed=0, n=90):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.stack([(rng.integers(0, k, n) + y) % k for k in N_STATES], axis=1)
    return EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=2)


def random_cpt(shape, seed=0):
    """Return distributions over the first axis."""
    p = np.random.default_rng(seed).uniform(0.1, 1, shape)
    return p / p.sum(axis=0)


@pytest.mark.parametrize("learner", [None, MaximumLikelihood(alpha=3), LBFGS(max_iter=5)])
def test_fixed_cpts_are_kept_and_others_are_learned(learner):
    data, given = rows(), random_cpt((2, 3, 2))
    tables = FixedCPTs({1: given.tolist()}, parameters=learner).fit(CHAIN, data, np.random.default_rng(0))
    own = (learner or MaximumLikelihood()).fit(CHAIN, data, np.random.default_rng(0))
    assert tables.probabilities(1) == pytest.approx(given)
    for i in (0, 2):
        np.testing.assert_array_equal(tables[i], own[i])
    np.testing.assert_array_equal(tables.log_prior, own.log_prior)


def test_predictions_are_products_of_cpts():
    data, given = rows(), {0: random_cpt((3, 2)), 2: random_cpt((4, 2, 2), 1)}
    model = BayesNetClassifier(structure=CHAIN, parameters=FixedCPTs(given)).fit_encoded(data)
    learned = MaximumLikelihood().fit(CHAIN, data, np.random.default_rng(0))
    prior, middle = np.exp(learned.log_prior), learned.probabilities(1)
    every = np.array(list(itertools.product(*map(range, N_STATES))))
    codes = EncodedData.from_codes(every, [0, 1] * 12, n_states=N_STATES).codes
    scores = np.exp(model.model_.log_joint(codes))
    for (a, b, c), found in zip(every.tolist(), scores, strict=True):
        assert found == pytest.approx([prior[k] * given[0][a, k] * middle[b, a, k] * given[2][c, b, k] for k in (0, 1)])
    assert scores.sum() == pytest.approx(1)


def test_zeros_are_impossible_values():
    given = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    model = NaiveBayesClassifier(parameters=FixedCPTs({0: given})).fit_encoded(rows())
    codes = EncodedData.from_codes([[2, 0, 0], [0, 0, 0]], [0, 1], n_states=N_STATES).codes
    scores = model.model_.log_joint(codes)
    assert scores[0, 0] == -np.inf
    assert scores[1, 1] == -np.inf


def test_names_structures_and_files(tmp_path):
    data = rows()
    X = pd.DataFrame(data.codes.T, columns=list("abc")).astype(str)
    given = random_cpt((4, 3, 2))
    structure = ChowLiu(knowledge=Knowledge(required=[("a", "c")]))
    model = BayesNetClassifier(structure=structure, parameters=FixedCPTs({"c": given})).fit(X, data.y)
    assert model.tables_.probabilities(2) == pytest.approx(given)
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    np.testing.assert_array_equal(loaded.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    np.testing.assert_array_equal(loaded.parameters.cpts["c"], given)


@pytest.mark.parametrize(
    ("cpts", "message"),
    [
        ({0: random_cpt((2, 2))}, r"cpts\[0\] has shape \(2, 2\), but the network needs \(3, 2\): 3 values, 2 classes"),
        ({1: random_cpt((2, 2))}, r"needs \(2, 3, 2\): 2 values, 3 values of 0, 2 classes\. .* Knowledge\(required"),
        (
            {0: [[0.5, 0.5], [0.5, 0.4], [0.0, 0.2]]},
            r"must sum to 1, but cpts\[0\]\[:, 1\] sums to 1\.1\.",
        ),
        ({0: [[1.5, 1], [-0.5, 0], [0, 0]]}, r"cpts\[0\] must contain probabilities from 0 to 1, got 1\.5"),
        ({0: [[np.nan, 1], [1, 0], [0, 0]]}, r"cpts\[0\] must contain probabilities from 0 to 1, got nan"),
        ({0: [["x", 1], [1, 0], [0, 0]]}, r"cpts\[0\] must be an array of numbers"),
        ({7: [[1, 1]]}, "cpts contains column 7, but the data have 3 columns"),
        ({"a": [[1, 1]]}, "cpts contains the name 'a', but the data have no column names"),
        ([], "The 'cpts' parameter of FixedCPTs must be an instance of 'dict'"),
    ],
)
def test_invalid_cpts_are_refused(cpts, message):
    with pytest.raises(ValueError, match=message):
        FixedCPTs(cpts).fit(CHAIN, rows(), np.random.default_rng(0))


def test_a_column_twice_and_other_kinds_of_cpts_are_refused():
    data = rows()
    X = pd.DataFrame(data.codes.T, columns=list("abc")).astype(str)
    given = random_cpt((3, 2))
    with pytest.raises(ValueError, match="cpts contains X column 'a' twice, by name and by position"):
        NaiveBayesClassifier(parameters=FixedCPTs({"a": given, 0: given})).fit(X, data.y)
    with pytest.raises(
        TypeError,
        match=r"parameters must return CPTs with entries that can be replaced, but HierarchicalSmoothing\(.*\) returns",
    ):
        FixedCPTs({0: given}, parameters=HierarchicalSmoothing(sparse=True)).fit(CHAIN, data, np.random.default_rng(0))


def test_batches_and_counts_give_the_model_of_all_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"test": rng.choice(["no", "yes"], 80), "town": rng.choice(["Graz", "Linz"], 80)})
    y = rng.choice(["healthy", "ill"], 80)
    model = NaiveBayesClassifier(parameters=FixedCPTs({"test": [[0.95, 0.1], [0.05, 0.9]]}))
    expected = clone(model).fit(frame, y).tables_
    parts = clone(model)
    for rows in (slice(0, 30), slice(30, 80)):
        parts.partial_fit(frame[rows], y[rows], classes=["healthy", "ill"])
    counts = TableCounts.of_source([(frame, y)])
    for found in (parts, clone(model).fit_batches([(frame, y)]), clone(model).from_counts(counts)):
        np.testing.assert_array_equal(found.tables_.cells, expected.cells)
    with pytest.raises(ValueError, match=r"cpts contains 'tests', .* Did you mean 'test'\?"):
        NaiveBayesClassifier(parameters=FixedCPTs({"tests": [[1, 1]]})).from_counts(counts)


def test_learners_of_rows_have_no_partial_fit():
    assert not hasattr(NaiveBayesClassifier(parameters=FixedCPTs({}, parameters=LBFGS())), "partial_fit")
    assert hasattr(NaiveBayesClassifier(parameters=FixedCPTs({}, parameters=MaximumLikelihood(alpha=2))), "partial_fit")

"""Learning chunk by chunk: the same model as from all rows, and what is refused."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    ConjugateGradient,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableCounts,
    TableEncoder,
)
from tanlearn.baselines import AnDEClassifier, AODEClassifier, ChowLiu, GreedySearch, KDependence, RandomTree
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer

CLASSES = ["no", "perhaps", "yes"]
MODELS = [
    NaiveBayesClassifier(),
    NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.1, shrinkage=2), class_prior=[0.2, 0.3, 0.5]),
    BayesNetClassifier(),
    BayesNetClassifier(structure=Structure([[-1, -1], [0, -1], [0, 1], [2, -1]]), class_weight={"yes": 2}),
    BayesNetClassifier(structure=ChowLiu()),
    BayesNetClassifier(structure=ChowLiu(penalty="bic"), parameters=MaximumLikelihood(alpha=0.5)),
    BayesNetClassifier(structure=KDependence(k=1)),
    BayesNetClassifier(structure=RandomTree(), random_state=3),
    AODEClassifier(),
    AnDEClassifier(n=3, class_prior=[0.2, 0.3, 0.5]),
]


def table(n, seed=0):
    """Categories that all chunks know, some missing; classes that depend on them."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, n)
    columns = {f"x{i}": pd.Categorical.from_codes((code + rng.integers(0, 2, n)) % 3, list("abc")) for i in range(4)}
    frame = pd.DataFrame(columns)
    frame.loc[rng.random(n) < 0.1, "x1"] = None
    return frame, np.array(CLASSES)[code]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:70])
def test_chunks_make_the_model_of_all_rows(model):
    X, y = table(300)
    weights = np.random.default_rng(1).integers(0, 3, 300)
    streamed = clone(model)
    for rows in np.split(np.arange(300), [7, 8, 100]):
        streamed.partial_fit(X.iloc[rows], y[rows], CLASSES, np.maximum(weights[rows], rows == 7))
    whole = clone(model).fit(X, y, np.maximum(weights, np.arange(300) == 7))
    np.testing.assert_array_equal(streamed.predict_joint_log_proba(X), whole.predict_joint_log_proba(X))
    np.testing.assert_array_equal(streamed.classes_, whole.classes_)
    if not isinstance(model, AODEClassifier | AnDEClassifier):
        assert streamed.structure_ == whole.structure_
        np.testing.assert_array_equal(streamed.tables_.cells, whole.tables_.cells)
    assert streamed.n_parameters_ == whole.n_parameters_


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.integers(31, 119), max_size=5), st.integers(0, 99))
def test_any_partition_in_any_order(cuts, seed):
    X, y = table(120, seed)
    chunks = [rows for rows in np.split(np.arange(30, 120), np.array(sorted(cuts), int) - 30) if len(rows)]
    np.random.default_rng(seed).shuffle(chunks)
    model = BayesNetClassifier(structure=ChowLiu())
    for rows in [np.arange(30), *chunks]:  # the first chunk needs two classes
        model.partial_fit(X.iloc[rows], y[rows], CLASSES)
    expected = BayesNetClassifier(structure=ChowLiu()).partial_fit(X, y, CLASSES)
    assert model.counts_ == expected.counts_
    np.testing.assert_array_equal(model.tables_.cells, expected.tables_.cells)


def test_the_first_chunk_decides_on_cuts_and_categories():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.stack([y + rng.normal(size=400), np.arange(400) // 100.0], axis=1).astype(object)
    X[:, 1] = np.array(["a", "b", "c", "d"], dtype=object)[X[:, 1].astype(int)]
    model = NaiveBayesClassifier()
    model.partial_fit(X[:200], y[:200], [0, 1])
    with pytest.warns(UserWarning, match=r"no value in 1 column.* X column 1 \(holds 'c', fit had 'a'\)\. Write the"):
        model.partial_fit(X[200:], y[200:], [0, 1])
    assert model.encoder_.categories_[1].tolist() == ["a", "b"]
    assert model.counts_.cells[model.tables_.layout.offset[1] :].sum() == 200  # c and d count as missing
    assert model.counts_.cells[:2].sum() == 400
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize(
    ("later", "named"),
    [
        ([["a", 1.5, None]], None), ([[None, 9.5, "u"]], None), ([["b", 0.5, "v"]], "X column 0, X column 2"),
        ([["a", 0.5, "v"], ["a", 0.5, "u"]], "X column 2"),
        ([["b", 0.5, "u"]] * 9 + [["a", 0.5, "u"]] * 91, "X column 0"),
    ],
)  # fmt: skip
def test_training_rows_with_categories_that_the_first_chunk_lacks_are_reported(later, named):
    first, y = [["a", float(i), "u"] for i in range(20)], np.arange(20) // 10
    model = NaiveBayesClassifier().partial_fit(first, y, [0, 1])
    counts = TableCounts.of_source([(first, y)])
    zeros = np.zeros(len(later), int)
    for learn in (lambda: model.partial_fit(later, zeros), lambda: counts.update(later, zeros)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learn()
        texts = [str(warning.message) for warning in caught]
        assert len(texts) == (named is not None)
        assert named is None or f"count as missing: {named}. Start with more rows" in texts[0]
    # The words are those of every chunk, so that Python shows them once. A row of weight 0 is no row.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit([["c", 0.5, "w"], ["a", 0.5, "u"]], [0, 1], sample_weight=[0, 1])


def test_a_chunk_that_breaks_a_rule_changes_nothing():
    X, y = table(60)
    model = BayesNetClassifier(structure=ChowLiu()).partial_fit(X, y, CLASSES)
    counts, tables = model.counts_.to_bytes(), model.tables_
    for arguments, message in [
        ((X, ["maybe"] * 60), r"y holds 'maybe' in row 0, which is not among the classes: 'no', 'perhaps', 'yes'\. "),
        ((X, y, ["no", "yes"]), r"classes must be the same as in the first call"),
        ((X.iloc[:, :2], y), "feature names should match|features"),
        ((X, y, None, -np.ones(60)), "sample_weight must be non-negative, but is -1"),
        ((X, y[:5]), "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*arguments)
    assert model.counts_.to_bytes() == counts
    assert model.tables_ is tables
    assert model.partial_fit(X, y).counts_.class_counts.sum() == 120


def test_a_first_chunk_that_breaks_a_rule_leaves_no_model():
    X, y = table(60)
    model = NaiveBayesClassifier()
    with pytest.raises(ValueError, match="the first call of partial_fit must get the classes"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, y, ["no", "yes"])
    with pytest.raises(ValueError, match=r"cut points .* 9 row\(s\) have the class 'no'"):
        model.partial_fit(np.linspace(0, 1, 9)[:, np.newaxis], ["no"] * 9, CLASSES)
    assert not hasattr(model, "encoder_")
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("classifier", [NaiveBayesClassifier, AODEClassifier])
def test_a_stream_may_begin_with_rows_of_one_class(classifier):
    model = classifier().partial_fit([["a", 1]], ["yes"], classes=["no", "yes"])
    with pytest.warns(UserWarning, match=r"2 column.* categories that were not seen when the encoder was"):
        model.partial_fit([["b", 2]], ["yes"], classes=["no", "yes"])
    model.partial_fit([["a", 1]], ["no"], classes=["no", "yes"])
    assert model.counts_.class_counts.tolist() == [1, 2]
    assert model.encoder_.categories_[0].tolist() == ["a"]
    quantiles = NaiveBayesClassifier(encoder=TableEncoder(discretizer=QuantileDiscretizer()))
    assert quantiles.partial_fit([[0.5], [1.5]], ["yes", "yes"], ["no", "yes"]).encoder_.n_states_.tolist() == [2]


def test_a_forest_does_not_begin_with_rows_of_one_class():
    model = BayesForestClassifier(weights=None)
    with pytest.raises(ValueError, match=r"networks are grown from the first batch.* of one class.*larger batch"):
        model.partial_fit([["a"], ["b"]], ["yes", "yes"], ["no", "yes"])
    assert not hasattr(model, "encoder_")


def test_a_model_of_all_rows_is_not_gone_on_with():
    X, y = table(60)
    model = NaiveBayesClassifier().fit(X, y)
    message = r"NaiveBayesClassifier has no counts, because it was fitted from all rows.*clone\(model\).partial_fit"
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, CLASSES)
    streamed = clone(model).partial_fit(X, y, CLASSES)
    assert not hasattr(streamed.fit(X, y), "counts_")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BayesNetClassifier(structure=GreedySearch()), r"GreedySearch\(\) needs all rows at once"),
        (NaiveBayesClassifier(parameters=ConjugateGradient()), r"ConjugateGradient\(\) needs all rows at once"),
    ],
)
def test_learners_that_need_all_rows_have_no_partial_fit(model, message):
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        model.partial_fit([["a"]], ["no"], CLASSES)
    assert re.search(message, str(caught.value.__cause__))


def test_balanced_weights_and_two_parents_say_what_to_do():
    X, y = table(60)
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows at once"):
        NaiveBayesClassifier(class_weight="balanced").partial_fit(X, y, CLASSES)
    with pytest.raises(ValueError, match="CPTs of several parents need counts of three"):
        BayesNetClassifier(structure=KDependence(k=2)).partial_fit(X, y, CLASSES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"class_prior": [0.5, 0.6, 0.1]},
        {"class_weight": {"maybe": 2}},
        {"structure": Structure([-1, 0])},
        {"structure": KDependence(k=2)},
        {"structure": ChowLiu(penalty="zzz")},
        {"parameters": MaximumLikelihood(alpha=-1)},
    ],
    ids=str,
)
def test_a_setting_that_breaks_a_rule_changes_nothing(wrong):
    """Neither before the first chunk nor after it; mended, the stream goes on as if nothing had been."""
    X, y = table(60)
    right = BayesNetClassifier(structure=ChowLiu())
    model = clone(right).set_params(**wrong)
    for n_chunks in range(2):
        model.set_params(**wrong)
        with pytest.raises(ValueError, match=r"must|several|has 2 features|counted (with|for) another"):
            model.partial_fit(X, y, CLASSES)
        model.set_params(**{name: getattr(right, name) for name in wrong})
        model.partial_fit(X, y, CLASSES)
        assert model.counts_.class_counts.sum() == 60 * (n_chunks + 1)


def test_another_kind_of_structure_is_refused_within_a_stream():
    X, y = table(60)
    for first, second in ((None, ChowLiu()), (ChowLiu(), None), (None, Structure([-1, 0, 1, 2]))):
        model = BayesNetClassifier(structure=first).partial_fit(X, y, CLASSES).set_params(structure=second)
        with pytest.raises(ValueError, match="earlier batches were counted"):
            model.partial_fit(X, y, CLASSES)


def test_a_copy_with_another_prior_streams_by_itself():
    X, y = table(60)
    model = NaiveBayesClassifier().partial_fit(X, y, CLASSES)
    before, prior = model.predict_proba(X), [0.2, 0.3, 0.5]
    other = model.with_class_prior(prior).partial_fit(X, y)
    assert model.counts_.cells[:3].sum() == 60
    np.testing.assert_array_equal(model.predict_proba(X), before)
    expected = NaiveBayesClassifier(class_prior=prior).partial_fit(X, y, CLASSES).partial_fit(X, y)
    np.testing.assert_array_equal(other.predict_proba(X), expected.predict_proba(X))
    assert clone(other).class_prior == prior


@pytest.mark.filterwarnings("ignore:sample_weight adds up:UserWarning")
def test_integer_weights_of_a_stream_do_not_overflow():
    X, y = table(60)
    model = NaiveBayesClassifier().partial_fit(X, y, CLASSES, np.full(60, 2**56))
    model.partial_fit(X, y, None, np.full(60, 2**56))
    with pytest.raises(ValueError, match="the sum of integer weights must be at most"):
        model.partial_fit(X, y, None, np.full(60, 2**56))
    assert model.counts_.cells[:3].sum() == 2 * 60 * 2**56


def test_many_classes_make_no_noise():
    y = np.arange(60) % 26
    assert NaiveBayesClassifier().partial_fit(y[:, np.newaxis], y, range(26)).partial_fit([[3]] * 26, range(26))


@pytest.mark.parametrize("classes", [[1.5, -2.0], [0.25, 1, 2], [np.float32(0.1), 1]])
def test_fractions_are_no_classes_as_in_fit(classes):
    X = [["a"], ["b"]] * 3
    y = np.resize(np.array(classes), 6)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        NaiveBayesClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"classes must be a list of the classes .*Unknown label type: continuous"):
        NaiveBayesClassifier().partial_fit(X, y, classes=classes)
    assert NaiveBayesClassifier().partial_fit(X, [1.0, 2.0] * 3, classes=[1.0, 2.0]).classes_.tolist() == [1.0, 2.0]

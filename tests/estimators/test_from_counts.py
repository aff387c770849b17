"""Learning from counts that others have made: the model of all rows, whoever has counted which of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    ConjugateGradient,
    EncodedData,
    HierarchicalDirichlet,
    HierarchicalSmoothing,
    MaximumLikelihood,
    NaiveBayesClassifier,
    PairCounts,
    Structure,
    TableCounts,
    TANClassifier,
)
from tanlearn.baselines import (
    AnDEClassifier,
    AODEClassifier,
    ChowLiu,
    GreedySearch,
    KDependence,
    SelectiveKDependenceClassifier,
)
from tanlearn.baselines.row_counts import RowCounts
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.estimators.estimator_input import encode_training
from tanlearn.estimators.network_learning import count_pairs_in_trees
from tanlearn.structures.table_layout import TableLayout


class NeedsRows(BaseEstimator):
    """A learner of users that reads the rows of contexts."""

    needs = "contexts"

    def fit(self, structure, data, rng):
        raise NotImplementedError

    def from_contexts(self, contexts, rows):
        return rows()


TREE, WIDE = Structure([-1, 0, 1, 1]), Structure([[-1, -1], [0, -1], [0, 1], [2, -1]])


def pairs(data):
    return PairCounts(data.n_states, data.n_classes)


def rows(data):
    return RowCounts(data.n_states, data.n_classes)


def families(structure):
    return lambda data: FamilyCounts(TableLayout.of_parents(structure.parents, data.n_states, data.n_classes))


def contexts(structure):
    return lambda data: ContextCounts(structure.parents, data.n_states, data.n_classes)


#: A learner, and what is counted for it.
MODELS = {
    "naive Bayes": (NaiveBayesClassifier(), pairs),
    "naive Bayes, single values": (NaiveBayesClassifier(), families(Structure.naive_bayes(4))),
    "naive Bayes, smoothed": (
        NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.1), class_prior=[0.3, 0.7]),
        pairs,
    ),
    "default": (BayesNetClassifier(), pairs),
    "given tree": (BayesNetClassifier(structure=TREE), pairs),
    "given tree, families": (BayesNetClassifier(structure=TREE), families(TREE)),
    "given": (BayesNetClassifier(structure=WIDE), families(WIDE)),
    "given HDP": (BayesNetClassifier(structure=WIDE, parameters=HierarchicalDirichlet(n_iter=5)), contexts(WIDE)),
    "given HS": (BayesNetClassifier(structure=WIDE, parameters=HierarchicalSmoothing(m=1.0)), contexts(WIDE)),
    "Chow-Liu": (BayesNetClassifier(structure=ChowLiu()), pairs),
    "Chow-Liu, BIC": (BayesNetClassifier(structure=ChowLiu(penalty="bic")), pairs),
    "KDB-0": (BayesNetClassifier(structure=KDependence(k=0)), pairs),
    "KDB-1": (BayesNetClassifier(structure=KDependence(k=1)), pairs),
    "AODE": (AODEClassifier(), pairs),
    "A2DE": (AnDEClassifier(n=2), rows),
}
every_model = pytest.mark.parametrize(("model", "count"), MODELS.values(), ids=MODELS)


def table(n=300, seed=0):
    """Return numbers and categories with gaps, and classes of them."""
    rng = np.random.default_rng(seed)
    number, town = rng.normal(size=n).round(2), rng.choice(["Graz", "Linz", "Wien"], n)
    y = np.where((number > 0.2) ^ (town == "Wien") ^ (rng.random(n) < 0.1), "yes", "no")
    frame = pd.DataFrame({"number": number, "town": town, "rooms": rng.integers(1, 6, n), "area": rng.random(n) * 9})
    frame["area"] += 3 * (y == "yes")
    frame.loc[rng.random(n) < 0.1, ["town", "number"]] = None
    return frame, y


def encoded(frame, y, weights=None):
    """Return codes, and an estimator with encoder and classes."""
    border = NaiveBayesClassifier()
    data, _ = encode_training(border, frame, y, weights)
    return data, border


def counted(data, count, n_parts, seed=0):
    """Return the counts of rows in parts, merged in any order."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.integers(0, data.n_samples + 1, n_parts - 1))
    parts = [count(data).update(data.take(rows)) for rows in np.split(rng.permutation(data.n_samples), edges)]
    whole = count(data)
    for part in parts:
        whole.merge(part)
    return whole


@pytest.mark.parametrize("n_parts", [1, 2, 9])
@every_model
def test_counts_make_the_model_of_all_rows(model, count, n_parts):
    frame, y = table()
    weights = np.random.default_rng(1).integers(0, 3, 300)
    data, border = encoded(frame, y, weights)
    counts = counted(data, count, n_parts)
    before = counted(data, count, n_parts)
    found = clone(model)
    assert found.from_counts(counts, encoder=border.encoder_, classes=border.classes_) is found
    whole = clone(model).fit(frame, y, weights)
    np.testing.assert_array_equal(found.predict_proba(frame), whole.predict_proba(frame))
    np.testing.assert_array_equal(found.classes_, whole.classes_)
    assert found.classes_.dtype == whole.classes_.dtype
    np.testing.assert_array_equal(found.feature_names_in_, whole.feature_names_in_)
    assert (found.n_features_in_, found.n_parameters_) == (whole.n_features_in_, whole.n_parameters_)
    if hasattr(whole, "tables_"):
        np.testing.assert_array_equal(found.tables_.cells, whole.tables_.cells)
        assert found.structure_ == whole.structure_
    assert counts == before


@every_model
def test_without_an_encoder_the_model_is_that_of_codes(model, count):
    data, _ = encoded(*table())
    found = clone(model).from_counts(counted(data, count, 4))
    whole = clone(model).fit_encoded(data)
    np.testing.assert_array_equal(found.model_.log_joint(data.codes), whole.model_.log_joint(data.codes))
    assert not hasattr(found, "encoder_")
    with pytest.raises(NotFittedError):
        found.predict(table()[0])
    if hasattr(found, "partial_fit"):
        with pytest.raises(ValueError, match=r"fitted to counts of codes.*Pass encoder and classes to from_counts"):
            found.partial_fit(*table())


@pytest.mark.parametrize("name", ["naive Bayes", "given tree", "given", "Chow-Liu", "AODE", "A2DE"])
def test_chunks_may_follow(name):
    model, count = MODELS[name]
    frame, y = table()
    data, border = encoded(frame, y)
    first, rest = frame[:200], frame[200:]
    counts = counted(data.take(np.arange(200)), count, 3)
    found = clone(model).from_counts(counts, encoder=border.encoder_, classes=border.classes_)
    found.partial_fit(rest, y[200:])
    whole = clone(model).from_counts(counted(data, count, 1), encoder=border.encoder_, classes=border.classes_)
    np.testing.assert_array_equal(found.predict_proba(frame), whole.predict_proba(frame))
    assert counts == counted(data.take(np.arange(200)), count, 1), "what was passed is no part of the model"
    assert len(first) + len(rest) == found.counts_.class_counts.sum()


def test_forests_learn_from_counts_in_their_contexts():
    frame, y = table()
    model = BayesForestClassifier(n_estimators=3, weights=None, random_state=0)
    seen = clone(model).fit_batches([(frame[:150], y[:150])])
    elsewhere = TableCounts.of_model(seen).empty().update(frame[150:], y[150:])
    both = TableCounts.of_model(seen).merge(elsewhere)
    found = clone(model).from_counts(both)
    expected = seen.partial_fit(frame[150:], y[150:])
    np.testing.assert_array_equal(found.predict_proba(frame), expected.predict_proba(frame))
    codes = clone(model).from_counts(both.counts)
    np.testing.assert_array_equal(
        codes.model_.log_joint(found.encoder_.encode(frame)), found.model_.log_joint(found.encoder_.encode(frame))
    )
    with pytest.raises(ValueError, match="n_estimators is 4"):
        clone(model).set_params(n_estimators=4).from_counts(both)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("given HDP", "given HS")])  # keep none
def test_what_batches_have_counted_makes_their_model(name):
    model, _ = MODELS[name]
    frame, y = table()
    seen = clone(model).fit_batches([(frame[:150], y[:150]), (frame[150:], y[150:])])
    found = clone(model).from_counts(TableCounts.of_model(seen))
    np.testing.assert_array_equal(found.predict_proba(frame), seen.predict_proba(frame))


@pytest.mark.parametrize(
    ("model", "count", "message"),
    [
        (AODEClassifier(), rows, r"AODEClassifier\(\) needs counts of type PairCounts, got RowCounts"),
        (AnDEClassifier(), pairs, r"AnDEClassifier\(\) needs counts of type RowCounts, got PairCounts"),
        (BayesNetClassifier(structure=ChowLiu()), families(TREE), "of type PairCounts, got FamilyCounts"),
        (NaiveBayesClassifier(), contexts(TREE), "of type PairCounts or FamilyCounts, got ContextCounts"),
        (NaiveBayesClassifier(parameters=HierarchicalDirichlet()), pairs, "of type ContextCounts, got PairCounts"),
        (BayesForestClassifier(weights=None), pairs, "of type ForestCounts, got PairCounts"),
    ],
)
def test_counts_of_another_kind_are_refused(model, count, message):
    data, _ = encoded(*table())
    with pytest.raises(TypeError, match=message):
        model.from_counts(count(data).update(data))


@pytest.mark.parametrize(
    ("model", "count", "message"),
    [
        (BayesNetClassifier(structure=WIDE), pairs, "CPTs of several parents need counts of three"),
        (BayesNetClassifier(structure=KDependence(k=2)), pairs, "CPTs of several parents need counts of three"),
        (
            NaiveBayesClassifier(),
            families(TREE),
            r"of the families of Structure\(n_features=4, n_edges=3",
        ),
        (
            BayesNetClassifier(structure=WIDE, parameters=HierarchicalSmoothing()),
            contexts(WIDE),
            "m='auto' needs rows.*Set m",
        ),
        (
            BayesNetClassifier(structure=WIDE, parameters=NeedsRows()),
            contexts(WIDE),
            "^NeedsRows needs rows in addition to counts",
        ),
        (BayesNetClassifier(structure=Structure([-1, 0])), pairs, "the structure has 2 features"),
        (NaiveBayesClassifier(class_weight="balanced"), pairs, "class_weight must be None for counts"),
        (NaiveBayesClassifier(class_prior=[0.3, 0.3, 0.4]), pairs, "class_prior"),
        (NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=-1)), pairs, "'alpha' parameter"),
    ],
)
def test_counts_that_do_not_suffice_are_refused_and_nothing_is_changed(model, count, message):
    data, _ = encoded(*table())
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.from_counts(count(data).update(data))
    assert vars(model) == before


def test_encoder_and_classes_must_be_those_of_the_counts():
    frame, y = table()
    data, border = encoded(frame, y)
    counts, model = pairs(data).update(data), NaiveBayesClassifier()
    for arguments, message in (
        ({"encoder": border.encoder_}, "counts need classes and encoder, but classes is None"),
        ({"classes": border.classes_}, "counts need encoder and classes, but encoder is None"),
        (
            {"encoder": border.encoder_, "classes": ["a", "b", "c"]},
            "classes must contain 2 classes, like the counts, got 3",
        ),
        (
            {"encoder": border.encoder_, "classes": ["yes", "no"]},
            "classes must contain at least two different classes in sorted order",
        ),
        (
            {"encoder": border.encoder_, "classes": ["no", "no"]},
            "classes must contain at least two different classes in sorted order",
        ),
        (
            {"encoder": encoded(frame[frame["town"] != "Wien"], y[frame["town"] != "Wien"])[1].encoder_},
            r"3 values of X column 'town', but the encoder has 2",
        ),
        ({"encoder": encoded(frame[["town"]], y)[1].encoder_}, r"the counts have .*(columns|values)"),
    ):
        arguments = {"classes": border.classes_, **arguments} if "values" in message else arguments
        with pytest.raises(ValueError, match=message):
            model.from_counts(counts, **arguments)
    with pytest.raises(NotFittedError):
        model.from_counts(counts, encoder=clone(border.encoder_), classes=border.classes_)
    both = TableCounts(counts, encoder=border.encoder_, classes=border.classes_)
    with pytest.raises(ValueError, match="encoder and classes must not be passed with TableCounts"):
        model.from_counts(both, classes=border.classes_)
    assert not hasattr(model, "tables_")


def test_classes_without_rows():
    frame, y = table()
    data, border = encoded(frame, y)
    for rows_of, found in ((np.arange(0), 0), (np.flatnonzero(data.y), 1)):
        with pytest.raises(ValueError, match=rf"must contain rows of at least two classes, got {found}\."):
            NaiveBayesClassifier().from_counts(pairs(data).update(data.take(rows_of)))
    three = TableCounts(PairCounts(data.n_states, 3), encoder=border.encoder_, classes=["never", "no", "yes"])
    model = NaiveBayesClassifier().from_counts(three.update(frame, y))
    streamed = NaiveBayesClassifier().partial_fit(frame, y, ["never", "no", "yes"])
    np.testing.assert_array_equal(model.predict_proba(frame), streamed.predict_proba(frame))


@pytest.mark.parametrize(
    "model",
    [
        TANClassifier(),
        BayesForestClassifier(),
        SelectiveKDependenceClassifier(),
        BayesNetClassifier(structure=GreedySearch()),
        BayesNetClassifier(structure=ChowLiu(), parameters=HierarchicalDirichlet()),
        NaiveBayesClassifier(parameters=ConjugateGradient()),
    ],
)
def test_learners_that_need_rows_have_no_from_counts(model):
    assert not hasattr(model, "from_counts")


def test_attributes_of_an_earlier_fit_are_gone():
    X = pd.DataFrame({"town": ["a", "b", "b", "a"]})
    y = ["no", "yes", "yes", "no"]
    model = NaiveBayesClassifier().fit(X, y)
    assert model.feature_names_in_.tolist() == ["town"]
    model.from_counts(TableCounts.of_source([(X.to_numpy(), y)]))  # of columns without names
    assert not hasattr(model, "feature_names_in_")
    assert model.predict([["a"], ["b"]]).tolist() == ["no", "yes"]


def test_wrong_parameters_are_refused_before_anything_is_learned():
    counts = TableCounts.of_source([([["a"], ["b"]], ["no", "yes"])])
    model = NaiveBayesClassifier(device="tpu")
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda', or"):
        model.from_counts(counts)
    assert not hasattr(model, "counts_")


def test_a_second_parent_that_is_the_first_column_needs_more_than_pairs():
    data = EncodedData.from_codes([[0, 1, 1], [1, 0, 1], [1, 1, 0]], [0, 1, 1])
    counts = PairCounts(data.n_states, 2).update(data)
    with pytest.raises(ValueError, match="CPTs of several parents need counts of three"):
        count_pairs_in_trees(counts, Structure([[-1, -1], [0, -1], [1, 0]]))

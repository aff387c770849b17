"""Classifiers with a category for missing values: what they learn from it, what they marginalize, and their files."""

import itertools
import json

import numpy as np
import pytest
from sklearn.base import clone

import tanlearn
from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    KTreeClassifier,
    NaiveBayesClassifier,
    Structure,
    TableCounts,
    TableEncoder,
    TANClassifier,
    TermNetClassifier,
)
from tanlearn.displays.names import value_names
from tanlearn.encoding.summaries import TableSummary
from tanlearn.sources.columns import read_columns

CATEGORY = TableEncoder(handle_missing="category")
LEARNERS = {
    "naive Bayes": NaiveBayesClassifier(),
    "TAN": TANClassifier(n_epochs=5, random_state=0),
    "k-tree": KTreeClassifier(n_epochs=5, random_state=0),
    "forest": BayesForestClassifier(n_estimators=4, random_state=0),
    "terms": TermNetClassifier(),
    "boosted terms": BoostedTermsClassifier(max_terms=100, random_state=0),
    "terms with parents": TermNetClassifier(max_parents=5),
}


def rows(n_samples, seed=0):
    """Return strings and numbers that are missing in class "yes" only, and noise that is missing at random."""
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes"])[rng.permutation(np.arange(n_samples) % 2)]
    town, number = rng.choice(["Graz", "Linz", "Wels"], n_samples), rng.normal(size=(2, n_samples))
    X = [[t, float(a), float(b)] for t, a, b in zip(town, *number, strict=True)]
    for row, label in zip(X, y, strict=True):
        if label == "yes":
            row[int(rng.integers(2))] = None
        if rng.random() < 0.2:
            row[2] = None
    return X, y


def treating(estimator, how):
    """Return an unfitted copy of a classifier with this treatment of missing values."""
    return clone(estimator).set_params(encoder=TableEncoder(handle_missing=how))


@pytest.mark.filterwarnings("ignore:discretization left a single interval")
@pytest.mark.parametrize("learner", LEARNERS)
def test_missing_values_can_determine_the_class(learner):
    X, y = rows(300)
    new, labels = rows(200, seed=1)
    found = treating(LEARNERS[learner], "category").fit(X, y)
    assert found.score(new, labels) > 0.98
    assert found.encoder_.has_missing_category_.all()
    if learner != "forest":  # whose networks always have a value for missing values
        assert treating(LEARNERS[learner], "marginalize").fit(X, y).score(new, labels) < 0.8


def test_the_default_of_an_encoder_is_that_of_the_classifier():
    X, y = rows(60)
    for encoder in (None, TableEncoder(), TableEncoder(discrete_features=[0])):
        model = TermNetClassifier(encoder=encoder).fit(X, y)
        assert model.encoder_.has_missing_category_.tolist() == [True, True, False]  # the last is noise
        assert model.encoder_.handle_missing == "auto"
        assert encoder is None or encoder.handle_missing is None
    towns = [row[:1] for row in X]
    for model in (NaiveBayesClassifier(encoder=TableEncoder()), treating(TermNetClassifier(), "marginalize")):
        assert not model.fit(towns, y).encoder_.has_missing_category_.any()


@pytest.mark.parametrize("learner", [NaiveBayesClassifier(), BayesNetClassifier(structure=Structure([-1, 0, 1]))])
def test_columns_complete_in_training_are_marginalized(learner):
    """Against enumeration: a missing value is a sum over its values, and an unseen one in any column, too."""
    rng = np.random.default_rng(0)
    X = [[*rng.choice(["a", "b", "c"], 2).tolist(), str(rng.choice(["u", "v"]))] for _ in range(60)]
    for row in X[::5]:
        row[1] = None
    y = rng.integers(0, 2, 60)
    model = treating(learner, "category").fit(X, y)
    assert model.encoder_.has_missing_category_.tolist() == [False, True, False]
    assert model.encoder_.n_states_.tolist() == [3, 4, 2]
    log_tables, parents = [np.asarray(model.tables_[i]) for i in range(3)], model.structure_.parents

    def joint(codes, c):
        total = model.tables_.log_prior[c]
        for i, table in enumerate(log_tables):
            total += table[(codes[i], *(codes[j] for j in parents[i] if j >= 0), c)]
        return np.exp(total)

    new = [["a", "b", None], [None, None, "u"], ["b", "unseen", "v"], [None, "c", None], ["unseen", None, "u"]]
    sides = [{"a": 0, "b": 1, "c": 2}, {"a": 0, "b": 1, "c": 2, None: 3}, {"u": 0, "v": 1}]
    expected = []
    for row in new:
        known = [
            [side[value]] if value in side else range(n) for side, value, n in zip(sides, row, (3, 4, 2), strict=True)
        ]
        p = [sum(joint(codes, c) for codes in itertools.product(*known)) for c in range(2)]
        expected.append(np.array(p) / sum(p))
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:discretization left a single interval")
@pytest.mark.parametrize("learner", LEARNERS)
def test_files_and_predictors_keep_the_category(learner, tmp_path):
    X, y = rows(80)
    new = [[None, None, None], ["Graz", None, 0.5], ["unseen", 0.2, None], [None, -9.0, 1.0]]
    model = treating(LEARNERS[learner], "category").fit(X, y)
    model.save(tmp_path / "model")
    loaded = tanlearn.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(loaded.encoder_.has_missing_category_, model.encoder_.has_missing_category_)
    assert loaded.encoder_.handle_missing == "category"
    predictor = model.row_predictor()
    assert [predictor.predict(tuple(row)) for row in X + new] == model.predict(X + new).tolist()
    if learner != "forest":  # which has no single network
        shares = model.explain(new)
        is_joint = hasattr(model, "predict_joint_log_proba")
        expected = model.predict_joint_log_proba(new) if is_joint else model.predict_log_proba(new)
        np.testing.assert_allclose(shares.sum(axis=1), expected, rtol=1e-9)
        assert shares[0, :2].any()  # a missing value is evidence


@pytest.mark.parametrize("kind", ["bif", "xmlbif"])
def test_networks_in_files_have_a_state_for_missing_values(kind, tmp_path):
    X = [["a", 1.5, 3], ["missing", 2.5, 4], [None, 9.5, None], ["a", None, 3], ["a", 9.0, None]]
    model = NaiveBayesClassifier(encoder=CATEGORY).fit(X, [0, 0, 1, 1, 1])
    path = tmp_path / f"network.{kind}"
    getattr(tanlearn, f"write_{kind}")(model, path)
    text = path.read_text()
    assert "missing_2" in text
    found = getattr(tanlearn, f"read_{kind}")(path)
    assert found.encoder_.n_states_.tolist() == [3, model.encoder_.n_states_[1], 3]
    np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    path.write_text(text.replace('"has_missing_category": true', '"has_missing_category": 1'))
    with pytest.raises(ValueError, match="its property 'tanlearn' is invalid"):
        getattr(tanlearn, f"read_{kind}")(path)


def test_descriptions_and_plots_name_the_category():
    X, y = rows(80)
    model = TermNetClassifier().fit(X, y)
    description = json.loads(json.dumps(model.describe()))
    assert [one.get("has_missing_category") for one in description["features"]] == [True, True, None]
    names = value_names(model.encoder_, 0), value_names(model.encoder_, 1)
    assert names[0] == ["Graz", "Linz", "Wels", "missing"]
    assert len(names[1]) == model.encoder_.n_states_[1]
    assert names[1][-1] == "missing"
    assert value_names(model.encoder_, 2)[-1].startswith("above")


def test_samples_have_missing_values_and_complete_keeps_them():
    X, y = rows(100)
    model = TermNetClassifier().fit(X, y)
    drawn, labels = model.sample(400, random_state=0)
    absent = np.array([[value is None for value in row] for row in drawn])
    assert absent[labels == "yes", :2].any(axis=1).mean() > 0.9
    assert absent[labels == "no", :2].mean() < 0.1
    completed, classes = model.complete([[None, 0.5, 0.5], ["unseen", None, None]])
    assert completed[:, :2].tolist() == [[None, 0.5], ["unseen", None]]
    assert completed[0, 2] == 0.5
    assert np.isfinite(completed[1, 2])  # missing at random, and imputed
    assert classes.tolist() == ["yes", "yes"]


def test_c_code_cannot_contain_the_category(tmp_path):
    X, y = rows(60)
    model = NaiveBayesClassifier(encoder=CATEGORY).fit([[row[0]] for row in X], y).with_bits((3, 1))
    with pytest.raises(ValueError, match=r"missing values, but column 'x0' has one.*handle_missing='marginalize'"):
        model.export_c(tmp_path / "model.h")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:discretization left a single interval")
@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4] * 15])
def test_batches_and_counts_give_the_same_model(weights):
    X, y = rows(60)
    expected = NaiveBayesClassifier(encoder=CATEGORY).fit(X, y, weights)
    batches = [(X[:20], y[:20]), (X[20:], y[20:])]
    if weights is not None:
        batches = [(X[:20], y[:20], weights[:20]), (X[20:], y[20:], weights[20:])]
    found = NaiveBayesClassifier(encoder=CATEGORY).fit_batches(lambda: iter(batches))
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    summary = TableSummary().update(read_columns(X), y, weights)
    counts = TableCounts.of_summary(summary, encoder=CATEGORY)
    for X_part, y_part, *own in batches:
        counts.update(X_part, y_part, *own)
    np.testing.assert_array_equal(
        NaiveBayesClassifier().from_counts(counts).predict_proba(X), expected.predict_proba(X)
    )
    other = TableCounts.of_summary(summary)
    with pytest.raises(ValueError, match="X column 0 has a category for missing values here, and none there"):
        counts.merge(other)
    with pytest.raises(ValueError, match="X column 0 has a category for missing values there only"):
        other.merge(counts)


def test_counts_in_files_keep_the_category(tmp_path):
    X, y = rows(40)
    counts = TableCounts.of_encoder(TableEncoder(handle_missing="category").fit([[r[0]] for r in X], y), ["no", "yes"])
    counts.update([[row[0]] for row in X], y).save(tmp_path / "counts")
    assert TableCounts.load(tmp_path / "counts") == counts


def test_later_batches_with_new_missing_values_are_reported():
    first = [["a", "u", None], ["b", "v", None]]
    model = NaiveBayesClassifier(encoder=CATEGORY).partial_fit(first, [0, 1], classes=[0, 1])
    with pytest.warns(UserWarning, match="1 column.* contain missing values, but had none .*: X column 1. Start with"):
        model.partial_fit([["a", None, None]], [1])
    counts = TableCounts.of_encoder(model.encoder_, [0, 1])
    with pytest.warns(UserWarning, match="1 column.* contain missing values, but had none .*: X column 0. Start with"):
        counts.update([[None, "u", None]], [1])
    assert NaiveBayesClassifier().partial_fit(first, [0, 1], classes=[0, 1]).partial_fit([["a", None, None]], [1])


def test_learners_of_complete_rows_accept_the_category():
    from tanlearn.baselines import SuperParent

    X, y = rows(60)
    X = [[row[0], "missing" if row[1] is None else "present", None if row[2] is None else "x"] for row in X]
    with pytest.raises(ValueError, match="handle_missing='category'"):
        BayesNetClassifier(structure=SuperParent()).fit(X, y)
    assert BayesNetClassifier(structure=SuperParent(), encoder=CATEGORY).fit(X, y).score(X, y) > 0.9

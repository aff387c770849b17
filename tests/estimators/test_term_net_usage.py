"""Networks of terms as users have them: rows with missing values, priors, files, descriptions, few bits, refusals."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from support.saved_models import FRAME, HOLED, fitted

from tanlearn import TermNetClassifier, load, read_bif, write_bif
from tanlearn.models.tables import Tables

N_STATES = (3, 2, 3)


def interacting(n=500, seed=0):
    """Return rows of three categories whose pairs all interact, and one of three classes."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, n) for k in N_STATES])
    effects = {(i, j): fixed.normal(size=(N_STATES[i], N_STATES[j], 3)) for i, j in ((0, 1), (0, 2), (1, 2))}
    for axis in (0, 1):  # no effects of single features
        effects = {pair: effect - effect.mean(axis=axis, keepdims=True) for pair, effect in effects.items()}
    scores = sum(3 * effect[codes[i], codes[j]] for (i, j), effect in effects.items())
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    names = np.array(["x", "y", "z"])
    return pd.DataFrame({name: names[c] for name, c in zip("abc", codes, strict=True)}), np.array(["no", "so", "yes"])[
        y
    ]


X, Y = interacting()
#: Each combination of values, as a row.
ALL = pd.DataFrame(itertools.product(*("xyz"[:k] for k in N_STATES)), columns=list("abc"))
INCOMPLETE = pd.DataFrame(
    [["x", None, None], [None, "y", "z"], [None, None, None], ["z", "x", "new"]], columns=[*"abc"]
)


@pytest.fixture(scope="module", params=[0, 1, 3])
def model(request):
    """Return a model with at most so many parents."""
    return TermNetClassifier(max_parents=request.param).fit(X, Y)


@pytest.fixture(scope="module")
def several():
    """Return a model in which a feature has two parents."""
    model = TermNetClassifier(max_parents=3).fit(X, Y)
    assert (model.structure_.parents[:, 1] >= 0).any()
    return model


def enumerated(model, row):
    """Return the log joint of a row as the log of a sum over all completions; unseen values count as missing."""
    matches = np.ones(len(ALL), bool)
    for name, value in row.items():
        if value in {*"xyz"}:
            matches &= (ALL[name] == value).to_numpy()
    return np.log(np.exp(model.predict_joint_log_proba(ALL[matches])).sum(axis=0))


def test_missing_values_are_marginalized(model):
    expected = np.array([enumerated(model, row) for _, row in INCOMPLETE.iterrows()])
    np.testing.assert_allclose(model.predict_joint_log_proba(INCOMPLETE), expected, atol=1e-9)
    shares = np.exp(expected - np.logaddexp.reduce(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(INCOMPLETE), shares, atol=1e-9)


def test_probabilities_of_rows_sum_to_one(model):
    assert np.exp(model.score_samples(ALL)).sum() == pytest.approx(1)
    total = np.exp(model.predict_joint_log_proba(ALL)).sum()
    assert (total == pytest.approx(1)) == model.tables_.is_normalized
    seen = INCOMPLETE[:3]
    expected = [np.logaddexp.reduce(enumerated(model, row)) - np.log(total) for _, row in seen.iterrows()]
    np.testing.assert_allclose(model.score_samples(seen), expected, atol=1e-9)
    unseen = pd.DataFrame({name: ["w"] for name in "abc"})
    assert model.score_samples(unseen)[0] < model.score_samples(ALL).min()


def test_more_parents_are_more_accurate_where_pairs_interact():
    X_test, y_test = interacting(2000, 1)
    models = [TermNetClassifier(max_parents=k).fit(X, Y) for k in (0, 1, 3)]
    losses = [log_loss(y_test, model.predict_proba(X_test)) for model in models]
    assert losses[0] - 0.2 > losses[1] > losses[2] + 0.02


def test_prior_changes_the_odds_by_its_ratio_to_the_class_frequencies(model, tmp_path):
    before, wanted = model.predict_proba(ALL), np.array([0.7, 0.1, 0.2])
    model.save(tmp_path / "model.tan")
    again = load(tmp_path / "model.tan")
    for one in (model, again, again.with_class_prior([0.1, 0.1, 0.8])):
        after = one.with_class_prior(wanted).predict_proba(ALL)
        factor = after / before
        factor /= factor.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(factor, factor[:1].repeat(len(ALL), axis=0), atol=1e-9)
        counts = np.unique(Y, return_counts=True)[1] + 1  # frequencies with a row more of each class
        ratio = wanted / (counts / counts.sum())
        np.testing.assert_allclose(factor[0], ratio / ratio.sum(), atol=1e-9)
    prior = TermNetClassifier(max_parents=model.max_parents, class_prior=wanted).fit(X, Y)
    np.testing.assert_allclose(prior.predict_proba(ALL), model.with_class_prior(wanted).predict_proba(ALL), atol=1e-9)


def test_description_is_enough_to_score_rows(model):
    """The oracle reads JSON, and adds up the columns in plain Python."""
    description = json.loads(json.dumps(model.describe()))
    features = description["features"]
    assert description["normalized"] == model.tables_.is_normalized
    assert description["training"]["loss"] == "ConditionalNLL()"
    rows = []
    for row in ALL.itertuples(index=False):
        states = [feature["categories"].index(value) for feature, value in zip(features, row, strict=True)]
        scores = [np.log(p) for p in description["class_probabilities"]]
        for feature in features:
            assert feature["probabilities"] is None
            for column in feature["columns"]:
                cell = 0
                for i, groups in zip(column["features"], column["groups"], strict=True):
                    cell = cell * (max(groups) + 1) + groups[states[i]]
                scores = [score + term for score, term in zip(scores, column["cells"][cell], strict=True)]
            parents = [features[column["features"][1]]["name"] for column in feature["columns"][1:]]
            assert sorted(parents) == sorted(feature["parents"])
        rows.append(scores)
    np.testing.assert_allclose(model.predict_joint_log_proba(ALL), rows, atol=1e-9)


def test_contributions_add_up(model):
    odds = model.predict_log_proba(ALL)
    shares = model.explain(ALL, against="no").sum(axis=1)
    np.testing.assert_allclose(shares, odds - odds[:, :1], atol=1e-9)
    if model.tables_.is_normalized:
        shares = model.explain(INCOMPLETE).sum(axis=1)
        np.testing.assert_allclose(shares, model.predict_joint_log_proba(INCOMPLETE), atol=1e-9)


def test_single_rows_and_tables_agree_with_predict(model):
    predictor = model.row_predictor()
    rows = pd.concat([ALL, INCOMPLETE])
    assert [predictor.predict(row) for row in rows.itertuples(index=False)] == model.predict(rows).tolist()
    dense = Tables(model.tables_.layout, model.tables_.cells, model.tables_.is_normalized)
    codes = model.encoder_.encode(ALL)
    scores = dense.log_prior + sum(dense.of_rows(i, codes) for i in range(3))
    np.testing.assert_allclose(model.predict_joint_log_proba(ALL), scores, atol=1e-9)


def test_few_bits_and_c(model, tmp_path):
    small = model.with_bits(12, X, Y)
    assert (small.predict(ALL) == model.predict(ALL)).mean() > 0.8
    small.export_c(tmp_path / "terms.h")
    assert "terms_predict" in (tmp_path / "terms.h").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="C code needs integer CPTs"):
        model.export_c(tmp_path / "other.h")


def test_trees_sample_complete_and_travel_as_bif(tmp_path):
    model = fitted("term-tan")
    drawn, y = model.sample(20_000, random_state=0)
    frequency = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(frequency, np.exp(model.tables_.log_prior), atol=0.02)
    assert model.score_samples(pd.DataFrame(drawn, columns=FRAME.columns)[:100]).min() > -np.inf
    completed, _ = model.complete(HOLED)
    assert completed["income"].notna().all()
    write_bif(model, tmp_path / "terms.bif")
    found = read_bif(tmp_path / "terms.bif", handle_unknown="missing")
    rows = HOLED[model.feature_names_in_]
    np.testing.assert_allclose(found.predict_joint_log_proba(rows), model.predict_joint_log_proba(rows), atol=1e-9)


def test_completion_is_the_most_probable_one():
    model = TermNetClassifier().fit(X, Y)
    completed, y = model.complete(INCOMPLETE[:3])
    joint = model.predict_joint_log_proba(ALL)
    for (_, row), found, label in zip(INCOMPLETE[:3].iterrows(), completed.to_numpy().tolist(), y, strict=True):
        matches = [all(pd.isna(row[name]) or row[name] == one[name] for name in "abc") for _, one in ALL.iterrows()]
        place = ALL.to_numpy().tolist().index(found)
        assert matches[place]
        assert joint[place].max() == pytest.approx(joint[matches].max())
        assert model.classes_[joint[place].argmax()] == label


def test_several_parents_are_refused_where_probabilities_must_be_normalized(several, tmp_path):
    for name in ("sample", "complete"):
        assert not hasattr(several, name)
        with pytest.raises(AttributeError) as refusal:
            getattr(several, name)
        assert "up to 2 parents per feature" in str(refusal.value.__cause__)
        assert "Fit it with max_parents=1." in str(refusal.value.__cause__)
    with pytest.raises(TypeError, match="or a TermNetClassifier with max_parents=1"):
        write_bif(several, tmp_path / "terms.bif")
    with pytest.raises(ValueError, match=r"row 0 lacks a feature.*sums of terms with several parents"):
        several.explain(INCOMPLETE)


def test_a_tree_that_was_selected_among_more_parents_can_sample():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    model = TermNetClassifier(max_parents=3)
    assert not hasattr(model, "sample")
    model.fit(rng.normal(size=(100, 2)) + y[:, np.newaxis], y)
    assert not (model.structure_.parents[:, 1:] >= 0).any()
    assert model.sample(3, random_state=0)[0].shape == (3, 2)


def test_rows_over_the_limit_of_operations_are_approximated_or_refused(several, monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "10")
    with pytest.warns(UserWarning, match="operations"):
        found = several.predict_proba(INCOMPLETE[2:3])
    np.testing.assert_allclose(found.sum(), 1)
    with pytest.raises(ValueError, match=r"operations"):
        several.score_samples(ALL)


def test_results_of_the_selection():
    model = TermNetClassifier(max_parents=5).fit(X, Y)
    assert model.cv_results_["param_n_parents"].tolist()[:3] == [0, 1, 2]
    assert len(model.cv_results_["mean_log_loss"]) == len(model.cv_results_["mean_test_score"])
    assert set(model.ridges_) == {"groups", "smooth", "edge_groups", "edge_smooth", "triple_groups"}
    n_triples = model.cv_results_["param_n_triples"]
    assert n_triples.tolist() == sorted(n_triples)
    assert n_triples[0] == 0
    assert n_triples[-1] in (model.n_features_in_, 3 * model.n_features_in_)
    assert model.history_[0].loss > model.history_[-1].loss
    assert list(model.learning_history()) == ["parameters"]
    assert len(model.history_) == model.n_iter_ + 1


@pytest.mark.parametrize("value", [-1, 6, 1.5, "1"])
def test_numbers_of_parents_are_validated(value):
    with pytest.raises(
        ValueError, match="The 'max_parents' parameter of TermNetClassifier must be an int in the range"
    ):
        TermNetClassifier(max_parents=value).fit(X, Y)


def test_missing_values_in_training():
    holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    model = TermNetClassifier(max_parents=3).fit(holes, Y)
    assert model.score(X, Y) > 0.6
    np.testing.assert_allclose(model.predict_proba(holes).sum(axis=1), 1)


def test_displays(several):
    pytest.importorskip("matplotlib")
    from tanlearn.displays import StructureDisplay, TableDisplay

    assert StructureDisplay.from_estimator(several).structure is several.structure_
    with pytest.raises(TypeError, match=r"TermNetClassifier stores sums of terms; its CPTs are tables_\[i\]"):
        TableDisplay.from_estimator(several, "a")

"""Parameters of earlier versions: they work, with one FutureWarning that names the current spelling."""

import inspect
import pickle
import re
import warnings
from copy import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tanlearn import (
    BayesForestClassifier,
    Candidates,
    GradientTraining,
    Hybrid,
    KTreeClassifier,
    TANClassifier,
    TANSearchCV,
    dask,
)
from tanlearn.files.models import _describe, _restore

X = np.random.default_rng(0).integers(0, 3, (90, 4))
Y = X[:, 0] % 2


def report(epoch):
    """Do nothing."""


FORMER = {
    "n_candidates": 2,
    "ordering": [3, 2, 1, 0],
    "learning_rate": 0.1,
    "structure_learning_rate": 0.02,
    "batch_size": 20,
    "temperature": (2.0, 0.1),
    "validation_fraction": 0.2,
    "patience": 3,
    "callback": report,
    "checkpoint": "training",
}
CASES = [
    (TANClassifier, {**FORMER, "init": "uniform", "dtype": "float64"}, "Candidates("),
    (KTreeClassifier, FORMER, "Candidates(kind='information', "),
]


def current(given):
    """Return settings in the present spelling."""
    limits = {name: given[name] for name in ("n_candidates", "ordering", "image_shape") if name in given}
    return limits, {name: value for name, value in given.items() if name not in limits}


@pytest.mark.parametrize(("classifier", "given", "candidates"), CASES)
def test_keywords_are_taken_with_one_warning(classifier, given, candidates):
    with pytest.warns(FutureWarning, match=r"removed in version 0\.4: ") as caught:
        model = classifier(**given, n_epochs=2)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert f"candidates={candidates}n_candidates=2, ordering=[3, 2, 1, 0])" in message
    assert "training=GradientTraining(batch_size=20, " in message
    limits, training = current(given)
    kind = classifier().candidates
    expected = classifier(
        candidates=Candidates(kind, **limits), training=GradientTraining(**training), n_epochs=2
    ).get_params()
    assert repr(model.get_params()) == repr(expected)
    assert model.training.callback is report  # not a copy
    assert repr(clone(model)) == repr(model)


@pytest.mark.parametrize(("classifier", "given"), [case[:2] for case in CASES])
def test_the_warning_names_what_to_write(classifier, given):
    with pytest.warns(FutureWarning, match=re.escape("Use training=GradientTraining(learning_rate=0.1).")):
        classifier(learning_rate=0.1)
    for name, value in given.items():
        with pytest.warns(FutureWarning, match=name) as caught:
            model = classifier(**{name: value})
        scope = {"Candidates": Candidates, "GradientTraining": GradientTraining, "report": report}
        spelling = re.search(r"Use (\w+)=(.*)\.$", str(caught[0].message))
        if name != "callback":  # whose representation is no code
            again = classifier(**{spelling[1]: eval(spelling[2], scope)})
            assert repr(again.get_params()) == repr(model.get_params())


@pytest.mark.parametrize(("classifier", "given"), [case[:2] for case in CASES])
def test_set_params_and_attributes_warn_too(classifier, given):
    model, nested = classifier(), {}
    for name, value in given.items():
        with pytest.warns(FutureWarning, match=rf"{name}\. Use set_params\((\w+)__{name}=\.\.\.\)") as caught:
            model.set_params(**{name: value})
        assert [warning.filename for warning in caught] == [__file__]
        nested[re.search(r"\((\w+)=", str(caught[0].message))[1]] = value
        with pytest.warns(FutureWarning, match=rf"Use get_params\(\)\['\w+__{name}'\]"):
            assert getattr(model, name) is value
    assert repr(model.get_params()) == repr(classifier().set_params(**nested).get_params())
    with pytest.warns(FutureWarning, match="learning_rate"):
        model.learning_rate = 0.5
    assert model.training.learning_rate == 0.5
    with pytest.warns(FutureWarning, match="batch_size"):
        assert copy(classifier()).batch_size == 100


@pytest.mark.parametrize("classifier", [TANClassifier, KTreeClassifier, BayesForestClassifier])
def test_classes_show_parameters_of_this_version_only(classifier):
    assert set(inspect.signature(classifier).parameters) == set(classifier().get_params(deep=False))
    former = {*classifier._moved, *classifier._removed} - {"device"}
    assert [name for name in former if hasattr(classifier, name)] == []


def test_settings_that_the_user_passed_stay_as_they_were():
    training, candidates = GradientTraining(batch_size=20), Candidates(n_candidates=2)
    with pytest.warns(FutureWarning, match="learning_rate"):
        model = TANClassifier(training=training, candidates=candidates, learning_rate=0.1, n_candidates=3)
    assert (model.training.batch_size, model.training.learning_rate, training.learning_rate) == (20, 0.1, None)
    assert (model.candidates.n_candidates, candidates.n_candidates) == (3, 2)
    other = TANClassifier(training=training).set_params(training__patience=3)
    assert (other.training.patience, training.patience) == (3, None)


def test_explicit_candidates_take_no_limits():
    lists = [[], [0], [0], [1]]
    with pytest.warns(FutureWarning, match="n_candidates"):
        assert TANClassifier(candidates=lists, n_candidates=None).candidates is lists
    with pytest.raises(
        ValueError, match=r"explicit lists of candidates do not use n_candidates, got n_candidates=2\. Leave it out"
    ):
        TANClassifier(candidates=lists, n_candidates=2)
    with pytest.raises(ValueError, match="explicit candidates have no parameters"):
        TANClassifier(candidates=lists).set_params(candidates__n_candidates=2)


@pytest.mark.parametrize(
    ("classifier", "name", "hint"),
    [
        (TANClassifier, "learning_rat", r"Did you mean training=GradientTraining\(learning_rate=\.\.\.\)\?"),
        (KTreeClassifier, "n_candidate", r"Did you mean candidates=Candidates\(n_candidates=\.\.\.\)\?"),
        (KTreeClassifier, "dtype", "has no parameter 'dtype'"),
        (TANClassifier, "n_epoch", r"Did you mean n_epochs=\.\.\.\?"),
        (BayesForestClassifier, "n_trees", "BayesForestClassifier() has no parameter 'n_trees'"),
        (TANClassifier, "increasing", r"has no parameter 'increasing'\. Pass Knowledge\(increasing=\[\.\.\.\]\)"),
        (dask.BayesForestClassifier, "n_estimator", r"Did you mean n_estimators=\.\.\.\?"),
    ],
)
def test_unknown_keywords_are_errors_that_name_the_nearest(classifier, name, hint):
    with pytest.raises(TypeError, match=hint.replace("()", r"\(\)")):
        classifier(**{name: 1})


@pytest.mark.parametrize("classifier", [TANClassifier, KTreeClassifier, BayesForestClassifier])
def test_monotone_columns_are_refused_with_a_remedy_when_set(classifier):
    with pytest.raises(ValueError, match=r"has no parameter 'decreasing'\. Pass Knowledge\(decreasing"):
        classifier().set_params(decreasing=["age"])


@pytest.mark.parametrize("classifier", [BayesForestClassifier, dask.BayesForestClassifier])
def test_removed_parameters_of_forests_keep_their_effect(classifier):
    with pytest.warns(FutureWarning, match="ridge, n_folds, device. Leave it out"):
        model = classifier(n_estimators=2, ridge=0.5, n_folds=3, device="cpu")
    assert repr(model) == "BayesForestClassifier(n_estimators=2)"
    for twin in (model, clone(model), copy(model), pickle.loads(pickle.dumps(model))):
        assert (twin._ridge, twin._n_folds, twin.device) == (0.5, 3, "cpu")
    with pytest.warns(FutureWarning, match="ridge"):
        model.set_params(ridge="auto", n_estimators=3)
    with pytest.warns(FutureWarning, match="ridge"):
        assert model.ridge == "auto"
    assert model.n_estimators == 3
    assert (classifier()._ridge, classifier()._n_folds) == ("auto", 5)
    for wrong in ({"ridge": -1}, {"n_folds": 1}, {"device": "cuda"}):
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of BayesForestClassifier must be"):
            classifier(**wrong)


@pytest.mark.parametrize("classifier", [TANClassifier, KTreeClassifier])
def test_nested_parameters_are_searched(classifier):
    base = classifier(n_epochs=2, calibrate=False, random_state=0, training=GradientTraining(batch_size=20))
    grid = {"training__learning_rate": [0.01, 0.1], "candidates__n_candidates": [1, 2]}
    found = GridSearchCV(base.set_params(candidates="subset"), grid, cv=2).fit(X, Y)
    assert set(found.best_params_) == set(grid)
    assert found.best_estimator_.training.batch_size == 20
    assert found.best_estimator_.candidates.kind == "subset"


@pytest.mark.filterwarnings("ignore:deprecated in TANClassifier:FutureWarning")
def test_searches_over_former_names_go_on():
    base = TANClassifier(loss=Hybrid(), n_epochs=2, calibrate=False)
    found = TANSearchCV(base, {"learning_rate": [0.01, 0.1]}, n_iter=2, random_state=0).fit(X, Y)
    assert found.best_estimator_.training.learning_rate == found.best_params_["learning_rate"]


FORMER_FILE = {
    "n_candidates": None,
    "ordering": None,
    "image_shape": None,
    "learning_rate": None,
    "structure_learning_rate": 0.01,
    "batch_size": 100,
    "temperature": {"kind": "tuple", "items": [1.0, 0.1]},
    "validation_fraction": None,
    "patience": None,
    "callback": None,
}


@pytest.mark.parametrize(
    ("model", "former", "expected"),
    [
        (TANClassifier(n_epochs=1, random_state=0), {"init": "maximum-likelihood", "dtype": "float32"}, ""),
        (
            TANClassifier(n_epochs=1, random_state=0),
            {"init": "uniform", "dtype": "float32", "batch_size": 20, "n_candidates": 2},
            "candidates=Candidates(n_candidates=2), n_epochs=1, random_state=0, "
            "training=GradientTraining(batch_size=20, init='uniform')",
        ),
        (TANClassifier(candidates=[[], [0], [0], [1]], n_epochs=1, random_state=0), {}, ""),
        (
            KTreeClassifier(n_epochs=1, random_state=0),
            {"learning_rate": 0.01},
            "n_epochs=1, random_state=0, training=GradientTraining(learning_rate=0.01)",
        ),
    ],
    ids=["defaults", "others", "lists", "k-tree"],
)
def test_files_of_earlier_versions_are_read_without_a_warning(model, former, expected):
    model.fit(X, Y)
    description, arrays = _describe(model, False, None)
    del description["parameters"]["training"]
    description["parameters"] |= {**FORMER_FILE, **former}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = _restore(description, arrays)
    text = " ".join(repr(again).split())
    assert text == (f"{type(model).__name__}({expected})" if expected else " ".join(repr(model).split()))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_files_of_earlier_forests_are_read_without_a_warning():
    model = BayesForestClassifier(n_estimators=2, random_state=0).fit(X, Y)
    description, arrays = _describe(model, False, None)
    description["parameters"] |= {"ridge": 0.5, "n_folds": 3, "device": "cpu"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = _restore(description, arrays)
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))

"""Held-out errors along a search or a training equal those of classifiers that are fitted by hand."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError

from tanlearn import (
    BayesNetClassifier,
    ConditionalNLL,
    GradientTraining,
    HybridCV,
    KTreeClassifier,
    Margin,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    Structure,
    TableEncoder,
    TANClassifier,
)
from tanlearn.baselines import ChowLiu, GreedySearch, ParentChange, SimulatedAnnealing, structures_along
from tanlearn.estimators.gradient_tan import MINI_BATCH_LOSS

ENCODER = TableEncoder(discretizer=QuantileDiscretizer(max_bins=4))


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:250, :8], y[:250], X[250:450, :8], y[250:450]


def network(structure, **parameters):
    return BayesNetClassifier(structure=structure, encoder=ENCODER, random_state=0, **parameters)


@pytest.mark.parametrize("search", [GreedySearch(score="margin"), SimulatedAnnealing(n_steps=300)], ids=repr)
def test_errors_along_a_search_are_those_of_its_structures(rows, search):
    model = network(search).fit(*rows[:2])
    before = model.structure_learner_.history_
    found = model.learning_errors(*rows)["structure"]
    along = list(structures_along(before, 8))
    assert [change for change, _ in found] == [change for change, _ in along]
    for (_, error), (_, structure) in zip(found, along, strict=True):
        other = network(structure).fit(*rows[:2])
        assert error == pytest.approx(1 - other.score(*rows[2:]))
    assert found[-1][1] == pytest.approx(1 - model.score(*rows[2:]))
    assert model.structure_learner_.history_ is before  # the fitted classifier is unchanged
    few = model.learning_errors(*rows, n_points=3)["structure"]
    assert few == [found[0], found[round((len(found) - 1) / 2)], found[-1]]


class Wandering:
    """A search that passes its best structure and returns it."""

    def learn(self, data, rng):
        scores = [0.1, 0.5, 0.3, 0.4]
        changes = enumerate(zip(range(1, 5), scores, strict=True))
        self.history_ = [ParentChange(child, (0,), score, k, k, 0.0) for k, (child, score) in changes]
        return Structure([-1, 0, 0, *[-1] * (data.n_features - 3)])


def test_errors_are_those_of_the_best_structure_so_far(rows):
    model = network(Wandering()).fit(*rows[:2])
    found = model.learning_errors(*rows)["structure"]
    assert [change.step for change, _ in found] == [0, 1]
    assert found[-1][1] == pytest.approx(1 - model.score(*rows[2:]))


@pytest.mark.parametrize(
    ("model", "loss", "n_epochs"),
    [
        (TANClassifier(n_epochs=5), MINI_BATCH_LOSS, 2),
        (TANClassifier(loss=Margin(), n_epochs=6), Margin(), 3),
        # With validation rows, the model is that of the best epoch: after a single epoch, that of this one.
        (TANClassifier(loss=Margin(), n_epochs=6, training=GradientTraining(validation_fraction=0.3)), Margin(), 1),
        (KTreeClassifier(loss=ConditionalNLL(), n_epochs=4), ConditionalNLL(), 3),
    ],
    ids=repr,
)
def test_errors_along_a_training_are_those_of_its_epochs(rows, model, loss, n_epochs):
    """A training that is stopped after some epochs of the same schedule has the error of the last one."""
    model = clone(model).set_params(encoder=ENCODER, random_state=0).fit(*rows[:2])
    found = model.learning_errors(*rows)["training"]
    assert [report for report, _ in found] == model.history_
    stopped = clone(model).set_params(
        calibrate=False, loss=loss, training__callback=lambda report: report.epoch == n_epochs
    )
    stopped.fit(*rows[:2])
    assert stopped.history_ == model.history_[:n_epochs]
    assert found[n_epochs - 1][1] == pytest.approx(1 - stopped.score(*rows[2:]))
    assert len({error for _, error in found}) > 1


def test_errors_end_where_patience_ended_the_training(rows):
    training = GradientTraining(validation_fraction=0.3, patience=2)
    model = TANClassifier(loss=Margin(), n_epochs=60, training=training, encoder=ENCODER, random_state=0)
    found = model.fit(*rows[:2]).learning_errors(*rows)["training"]
    assert 2 < len(found) == model.n_iter_ < 60


def test_errors_of_a_classifier_that_selects_its_loss_are_those_of_this_loss(rows):
    model = KTreeClassifier(n_epochs=3, encoder=ENCODER, random_state=0).fit(*rows[:2])
    same = KTreeClassifier(n_epochs=3, loss=model.loss_, encoder=ENCODER, random_state=0).fit(*rows[:2])
    errors = [error for _, error in model.learning_errors(*rows)["training"]]
    assert errors == [error for _, error in same.learning_errors(*rows)["training"]]
    assert model.history_ == same.history_


def test_other_stages_have_no_errors(rows):
    for model in (NaiveBayesClassifier(encoder=ENCODER), network(ChowLiu()), network(None)):
        assert model.fit(*rows[:2]).learning_errors(*rows) == {}


def test_warnings_of_fit_are_not_repeated(rows):
    X, y, X_test, y_test = rows
    rng = np.random.default_rng(0)
    X, X_test = (np.column_stack([part, rng.normal(size=len(part))]) for part in (X, X_test))
    model = BayesNetClassifier(structure=GreedySearch(score="margin"), encoder=TableEncoder(discrete_features=False))
    with pytest.warns(UserWarning, match="X column 8"):
        model.fit(X, y)
    with warnings.catch_warnings(action="error"):
        assert model.learning_errors(X, y, X_test, y_test)["structure"]


def test_parameter_learners_with_held_out_rows_are_used_for_each_structure(rows):
    model = network(GreedySearch(score="margin"), parameters=HybridCV()).fit(*rows[:2])
    ((_, first), *_) = model.learning_errors(*rows, n_points=2)["structure"]
    _, structure = next(structures_along(model.structure_learner_.history_, 8))
    other = network(structure, parameters=HybridCV()).fit(*rows[:2])
    assert first == pytest.approx(1 - other.score(*rows[2:]))


def test_bad_input_is_refused(rows):
    with pytest.raises(NotFittedError):
        network(GreedySearch()).learning_errors(*rows)
    model = network(GreedySearch(score="margin")).fit(*rows[:2])
    with pytest.raises(ValueError, match=r"n_points must be at least 2, .* got 1"):
        model.learning_errors(*rows, n_points=1)
    gradient = TANClassifier(loss=ConditionalNLL(), n_epochs=2, encoder=ENCODER, random_state=0).fit(*rows[:2])
    with pytest.raises(ValueError, match="y holds 7"):
        gradient.learning_errors(*rows[:3], np.full(200, 7))

"""Checks of one's own losses and learners: the right ones pass, and every fault is named with its remedy."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from tanlearn import EncodedData, Iteration, MaximumLikelihood, Structure, Tables, baselines, parameters
from tanlearn.baselines import ChowLiu, ParentChange
from tanlearn.checks import check_learner, check_loss
from tanlearn.training.losses import ConditionalNLL, HingeMargin, Hybrid, JointNLL, Margin, SoftHybrid


def name_of(tested):
    """Return the name of the class of an object, an id that is the same in every process."""
    return type(tested).__name__


class LogLoss:
    """The right one: minus the log posterior of the true class."""

    def value_and_gradient(self, scores, y):
        rows = np.arange(len(y))
        d_scores = softmax(scores, axis=1)
        d_scores[rows, y] -= 1
        return -log_softmax(scores, axis=1)[rows, y], d_scores


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize(
    "loss", [LogLoss(), JointNLL(), ConditionalNLL(), Margin(), HingeMargin(), Hybrid(), SoftHybrid()], ids=name_of
)
def test_right_losses_pass(loss, n_classes):
    check_loss(loss, n_classes=n_classes)


class Changed:
    """The log loss, with a fault."""

    def __init__(self, change):
        self.change = change
        self.n_calls = 0

    def value_and_gradient(self, scores, y):
        self.n_calls += 1
        return self.change(*LogLoss().value_and_gradient(scores, y), scores, self.n_calls)


def in_place(loss, gradient, scores, n_calls):
    scores -= 1
    return loss, gradient


def wrong_entry(loss, gradient, scores, n_calls):
    gradient[:, 1] += 1e-3
    return loss, gradient


FAULTS = {
    "wrong sign": (lambda loss, gradient, *_: (loss, -gradient), "with the wrong sign: derivative of row .* negate"),
    "mean": (lambda loss, gradient, *_: (loss, gradient / 40), "rows must be independent|0.025 times"),
    "always halved": (lambda loss, gradient, *_: (loss, gradient / 2), r"returns 0\.5 times the right gradient: "),
    "one entry": (wrong_entry, r"a wrong gradient in 33% of the entries, derivative of row 0 by the score of class 1"),
    "list": (lambda loss, gradient, *_: (loss.tolist(), gradient), "but loss is of type list"),
    "list of lists": (
        lambda loss, gradient, *_: (loss, gradient.tolist()),
        r"d_scores is of type list.*np.asarray\(d_scores",
    ),
    "no tuple": (
        lambda loss, gradient, *_: loss,
        r"a tuple \(loss, d_scores\), got an object of type ndarray",
    ),
    "sum": (lambda loss, gradient, *_: (loss.sum(), gradient), "loss is a single number. Return the loss of each row"),
    "shape": (lambda loss, gradient, *_: (loss[:, np.newaxis], gradient), r"loss of shape \(40,\), one per row"),
    "transposed": (lambda loss, gradient, *_: (loss, gradient.T), r"d_scores of shape \(40, 3\), one per score"),
    "in place": (in_place, "changes its arguments in place"),
    "state": (lambda loss, gradient, _, n: (loss + n, gradient), "different values for the same arguments"),
    "nan": (lambda loss, gradient, *_: (loss * np.nan, gradient), "nan or infinity for finite scores, first in row 0"),
    "float32": (
        lambda loss, gradient, *_: (loss, gradient.astype(np.float32)),
        "d_scores with the dtype of",
    ),
    "divided": (lambda loss, gradient, *_: (loss / len(loss), gradient / len(loss)), "rows must be independent"),
    "single": (lambda loss, gradient, scores, _: (loss + (scores.dtype == np.float32), gradient), "for float32"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_losses_are_named(name):
    change, message = FAULTS[name]
    with pytest.raises(AssertionError, match=f"(?s)Changed.value_and_gradient.*{message}"):
        check_loss(Changed(change))


def test_nan_for_impossible_classes_is_named():
    class Naive:
        def value_and_gradient(self, scores, y):
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            true = np.eye(scores.shape[1])[y]
            with np.errstate(invalid="ignore", divide="ignore"):
                return -(np.log(p) * true).sum(axis=1), p - true

    with pytest.raises(AssertionError, match="returns nan if the score of a wrong class is -inf"):
        check_loss(Naive())


def test_losses_of_another_number_of_classes_are_told_how():
    class Costs:
        def value_and_gradient(self, scores, y):
            loss, d_scores = LogLoss().value_and_gradient(scores, y)
            weight = np.array([1.0, 20.0])[y]
            return weight * loss, weight[:, np.newaxis] * d_scores

    check_loss(Costs(), n_classes=2)
    with pytest.raises(AssertionError, match=r"fails for 3 classes: .* pass that number as n_classes"):
        check_loss(Costs())
    with pytest.raises(ValueError, match="n_classes must be at least 2, got 1"):
        check_loss(Costs(), n_classes=1)


@pytest.mark.parametrize(
    ("loss", "message"), [(LogLoss, r"Pass LogLoss\(\) instead"), (object(), "must have the method value_and_gradient")]
)
def test_no_loss_at_all(loss, message):
    with pytest.raises(TypeError, match=message):
        check_loss(loss)


@pytest.mark.parametrize(
    "learner",
    [
        *(getattr(baselines, name)() for name in ("ChowLiu", "GreedySearch", "KDependence", "RandomTree")),
        parameters.MaximumLikelihood(),
        parameters.HierarchicalSmoothing(),
        parameters.ConjugateGradient(max_iter=5, calibrate=False),
        parameters.StochasticGradient(n_epochs=3),
    ],
    ids=name_of,
)
def test_right_learners_pass(learner):
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    check_learner(learner)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


@dataclass
class Learner:
    """A structure learner whose answer is any function of rows and generator."""

    answer: object
    needs: str = "rows"

    def learn(self, data, rng):
        return self.answer(data, rng)

    def from_counts(self, counts, rng):
        return Structure([-1, 0, 1, 2, 3])


def spoil(data, rng):
    data.codes[0] = 0
    return Structure.naive_bayes(data.n_features)


def by_number_of_rows(data, rng):
    return Structure([-1, 0 if data.n_samples == 120 else -1, -1, -1, -1])


def with_global_generator(data, rng):
    return Structure([-1, *np.random.randint(-1, 1, 4)])  # noqa: NPY002


def chow_liu(data, rng):
    return ChowLiu().learn(data, rng)


STRUCTURE_FAULTS = {
    "nothing": (Learner(lambda data, rng: None), "Learner.learn must return a Structure, got None"),
    "list": (Learner(lambda data, rng: [-1] * data.n_features), "must return a Structure, got an object of type list"),
    "size": (Learner(lambda data, rng: Structure([-1, 0])), "a structure with 5 features, like the rows, got 2"),
    "in place": (Learner(spoil), "changes the data"),
    "global": (Learner(with_global_generator), "a different result for the same data and seed"),
    "weights": (Learner(by_number_of_rows), "a different result if the rows of weight 0 are left out"),
    "counts": (
        Learner(chow_liu, "pairs"),
        r"from_counts and Learner.learn must return the same structure .* got Structure\(.*\) and",
    ),
}


@pytest.mark.parametrize("name", STRUCTURE_FAULTS)
def test_faults_of_structure_learners_are_named(name):
    learner, message = STRUCTURE_FAULTS[name]
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


class Fitter:
    """A parameter learner whose CPTs and history are maximum likelihood's, changed."""

    def __init__(self, change=lambda tables, data: tables, history=()):
        self.change = change
        self.history = history

    def fit(self, structure, data, rng):
        self.history_ = list(self.history)
        return self.change(MaximumLikelihood().fit(structure, data, rng), data)


def with_cells(change):
    return lambda tables, data: Tables(tables.layout, change(tables.cells.copy(), data))


def spoiled(cells, data):
    cells[5] = np.nan
    return cells


FIT_FAULTS = {
    "nothing": (Fitter(lambda tables, data: None), "Fitter.fit must return Tables, got None"),
    "array": (Fitter(lambda tables, data: tables.cells), "must return Tables, got an object of type ndarray"),
    "nan": (Fitter(with_cells(spoiled)), "CPTs without nan"),
    "unnormalized": (Fitter(with_cells(lambda cells, data: cells + 0.1)), r"must sum to 1, .* sum to 1\.\d+"),
    "weights": (
        Fitter(lambda tables, data: MaximumLikelihood(alpha=data.n_samples).from_counts(
            tables.layout, tables.layout.count(data.codes, data.y, data.weights)
        )),
        "rows of weight 0",
    ),
    "floats": (Fitter(history=[0.5, 0.4]), "entry 0 of Fitter.history_ lacks step, score, n_evaluations, seconds"),
    "backwards": (Fitter(history=[Iteration(2, 0.5, 1, 0.1), Iteration(1, 0.4, 2, 0.2)]), "step must not decrease"),
}  # fmt: skip


@pytest.mark.parametrize("name", FIT_FAULTS)
def test_faults_of_parameter_learners_are_named(name):
    learner, message = FIT_FAULTS[name]
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


def test_scores_that_are_no_probabilities_may_say_so():
    check_learner(Fitter(lambda tables, data: Tables(tables.layout, tables.cells + 0.1, is_normalized=False)))


def test_histories_of_both_kinds_pass():
    check_learner(Fitter(history=[Iteration(0, 0.5, 1, 0.1), Iteration(1, 0.4, 3, 0.2)]))
    search = Learner(chow_liu)
    search.history_ = [ParentChange(0, (1,), 0.5, 1, 4, 0.1)]
    check_learner(search)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (ChowLiu, r"Pass ChowLiu\(\)"),
        (object(), r"must have learn\(data, rng\)"),
        (baselines.AODEClassifier(), "so it is a classifier, not a learner. Use check_estimator"),
    ],
    ids=["class", "nothing", "classifier"],
)
def test_no_learner_at_all(learner, message):
    with pytest.raises(TypeError, match=message):
        check_learner(learner)


def test_data_of_the_checks_have_weights_of_zero():
    """Without them the checks of weights would pass everything."""
    seen = []
    check_learner(Learner(lambda data, rng: seen.append(data) or Structure([-1] * 5)))
    assert isinstance(seen[0], EncodedData)
    assert (seen[0].weights == 0).any()

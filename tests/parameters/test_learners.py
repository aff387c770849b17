"""Parameter learners."""

import numpy as np
import pytest
from numpydoc.docscrape import ClassDoc
from oracles import parameters as naive_parameters
from sklearn.base import clone

from tanlearn import (
    LBFGS,
    BackOffRidge,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    ConvexRelaxation,
    CrossTuned,
    EncodedData,
    EpochReport,
    ExpectationMaximization,
    ExtendedBaumWelch,
    FixedCPTs,
    HierarchicalDirichlet,
    HierarchicalSmoothing,
    Hybrid,
    HybridCV,
    IntegerBranchAndBound,
    Iteration,
    Margin,
    MaximumLikelihood,
    MonotoneLikelihood,
    StochasticGradient,
    Structure,
    parameters,
)
from tanlearn._typing import missing_code
from tanlearn.models.log_joint import log_joint
from tanlearn.parameters import BatchLearner, ParameterLearner
from tanlearn.training.objectives import Objective

RNG = np.random.default_rng(0)
CHAIN = Structure([-1, 0, 1])


def random_data(n=80, weight=None, missing=False):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    X = (y[:, np.newaxis] + rng.integers(0, 2, (n, 3))) % 3
    if missing:
        X[0, 1] = -1
    return EncodedData.from_codes(X, y, n_states=[3, 3, 3], sample_weight=weight)


@pytest.mark.parametrize("name", [own for own in parameters.__all__ if hasattr(getattr(parameters, own), "get_params")])
def test_settings_are_kept_as_they_are_given(name):
    kind = getattr(parameters, name)
    settings = {own: object() for own in kind._get_param_names()}
    assert kind(**settings).get_params(deep=False) == settings


def test_frequencies_by_hand():
    data = EncodedData.from_codes([[0, 0], [0, 1], [1, 1], [1, 1]], [0, 0, 0, 1], n_states=[2, 3])
    tables = MaximumLikelihood(alpha=1).fit(Structure([-1, 0]), data, RNG)
    np.testing.assert_allclose(np.exp(tables.log_prior), [4 / 6, 2 / 6])
    np.testing.assert_allclose(tables.probabilities(0), [[3 / 5, 1 / 3], [2 / 5, 2 / 3]])
    np.testing.assert_allclose(tables.probabilities(1)[:, 0, 0], [2 / 5, 2 / 5, 1 / 5])  # x1 given x0 = 0, class 0
    assert tables[1].shape == (3, 2, 2)
    assert tables.n_parameters == 1 + 2 + 2 * 2 * 2


def test_without_smoothing_zero_is_log_zero_and_empty_is_uniform():
    data = EncodedData.from_codes([[0], [0]], [0, 0], n_states=[2], n_classes=2)
    tables = MaximumLikelihood(alpha=0).fit(Structure([-1]), data, RNG)
    assert tables.probabilities(0).tolist() == [[1, 0.5], [0, 0.5]]
    assert tables[0][1, 0] == -np.inf
    assert not np.isnan(tables.cells).any()


def test_epsilon_replaces_zeros_and_renormalises():
    data = EncodedData.from_codes([[0], [0], [1]], [0, 0, 1], n_states=[2])
    p = MaximumLikelihood(alpha=0, epsilon=1e-5).fit(Structure([-1]), data, RNG).probabilities(0)
    np.testing.assert_allclose(p[:, 0], np.array([1, 1e-5]) / (1 + 1e-5), rtol=1e-12)


@pytest.mark.parametrize("parents", [[-1, -1, -1], [-1, 0, 1], [[-1, -1], [0, -1], [0, 1]]])
@pytest.mark.parametrize("weighted", [False, True])
def test_shrinkage_is_the_mixture_of_friedman(parents, weighted):
    weight = np.random.default_rng(2).integers(0, 3, 30) if weighted else None
    structure, data = Structure(parents), random_data(n=30, weight=weight, missing=True)
    tables = MaximumLikelihood(alpha=0, shrinkage=5).fit(structure, data, RNG)
    X = np.where(data.codes == missing_code(data.codes.dtype), -1, data.codes.astype(int)).T
    expected = naive_parameters.shrunk_frequencies(
        X, data.y, data.weights, structure.parents, data.n_states, data.n_classes, 5
    )
    for i in range(3):
        np.testing.assert_allclose(tables.probabilities(i), expected[i], rtol=1e-12)
    np.testing.assert_array_equal(tables.log_prior, MaximumLikelihood(alpha=0).fit(structure, data, RNG).log_prior)


def test_shrinkage_goes_together_with_pseudo_counts():
    data = EncodedData.from_codes([[0], [1], [1], [1]], [0, 0, 0, 1], n_states=[2])
    p = MaximumLikelihood(alpha=1, shrinkage=4).fit(Structure([-1]), data, RNG).probabilities(0)
    np.testing.assert_allclose(p[:, 0], [(1 + 1 + 4 * 1 / 4) / (3 + 2 + 4), (2 + 1 + 4 * 3 / 4) / (3 + 2 + 4)])


def test_shrinkage_of_a_feature_that_is_never_seen_is_uniform():
    data = EncodedData.from_codes([[-1, 0], [-1, 1]], [0, 1], n_states=[4, 2])
    tables = MaximumLikelihood(alpha=0, shrinkage=5).fit(Structure([-1, -1]), data, RNG)
    np.testing.assert_allclose(tables.probabilities(0), 1 / 4, rtol=1e-15)


def test_incomplete_families_do_not_count():
    data = EncodedData.from_codes([[0, -1], [1, 0], [1, 1]], [0, 0, 0], n_states=[2, 2], n_classes=1)
    tables = MaximumLikelihood(alpha=0).fit(Structure([-1, 0]), data, RNG)
    np.testing.assert_allclose(tables.probabilities(0)[:, 0], [1 / 3, 2 / 3])
    np.testing.assert_allclose(tables.probabilities(1)[:, 1, 0], [1 / 2, 1 / 2])


def test_two_parents_have_one_code_path():
    data = random_data()
    tables = MaximumLikelihood(alpha=1).fit(Structure([[-1, -1], [0, -1], [0, 1]]), data, RNG)
    rows = (data.codes[0] == 1) & (data.codes[1] == 2) & (data.y == 1)
    expected = (((data.codes[2] == 0) & rows).sum() + 1) / (rows.sum() + 3)
    assert tables.probabilities(2)[0, 1, 2, 1] == pytest.approx(expected)


@pytest.mark.parametrize("learner", [ConjugateGradient, LBFGS])
@pytest.mark.parametrize("loss", [ConditionalNLL(), Margin(scale=0.3)], ids=lambda loss: type(loss).__name__)
def test_batch_learners_lower_the_loss_and_stay_normalised(learner, loss):
    data = random_data()
    start = MaximumLikelihood(alpha=1).fit(CHAIN, data, RNG)
    tables = learner(loss=loss, max_iter=30).fit(CHAIN, data, RNG)
    objective = Objective(start.layout, data, loss)
    assert objective(tables.cells)[0] < objective(start.cells)[0]
    for i in range(3):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", [ConjugateGradient, LBFGS, ExtendedBaumWelch])
def test_search_can_start_at_frequencies_whose_zeros_are_replaced(kind):
    data = random_data()
    expected = MaximumLikelihood(alpha=0, epsilon=1e-5).fit(CHAIN, data, RNG)
    assert (expected.cells < np.log(1e-4)).any()  # some counts are zero
    learner = kind(epsilon=1e-5, alpha=3.0, max_iter=5, calibrate=False)
    np.testing.assert_array_equal(learner.start(CHAIN, data, RNG).cells, expected.cells)
    fitted = learner.fit(CHAIN, data, RNG)
    objective = Objective(fitted.layout, data, kind.default_loss())
    assert objective(fitted.cells)[0] < objective(expected.cells)[0]


def test_back_off_ridge_can_start_at_such_frequencies_of_naive_bayes():
    data = random_data()
    expected = MaximumLikelihood(alpha=0, epsilon=1e-5).fit(Structure.naive_bayes(3), data, RNG)
    found = BackOffRidge(epsilon=1e-5).start(CHAIN, data, RNG)
    for i in (1, 2):  # equal for each value of the parent
        theirs = np.broadcast_to(expected.probabilities(i)[:, np.newaxis], found.probabilities(i).shape)
        np.testing.assert_allclose(found.probabilities(i), theirs)


def test_batch_learners_find_the_same_optimum():
    data = random_data()
    values = []
    for learner in (ConjugateGradient, LBFGS):
        tables = learner(loss=ConditionalNLL(), max_iter=500, tol=1e-7).fit(Structure([-1, -1, -1]), data, RNG)
        values.append(Objective(tables.layout, data, ConditionalNLL())(tables.cells)[0])
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_stochastic_gradient_keeps_the_structure_and_learns():
    data = random_data()
    tables = StochasticGradient(loss=Hybrid(trade_off=10), n_epochs=40, batch_size=20).fit(CHAIN, data, RNG)
    assert tables.layout.parents.tolist() == CHAIN.parents.tolist()
    wrong = (tables.layout.log_joint(data.codes, tables.cells).argmax(axis=1) != data.y).mean()
    start = MaximumLikelihood().fit(CHAIN, data, RNG)
    assert wrong <= (start.layout.log_joint(data.codes, start.cells).argmax(axis=1) != data.y).mean()


@pytest.mark.parametrize("learner", [ConjugateGradient, LBFGS])
def test_iterates_are_those_of_shorter_searches(learner):
    data, seen = random_data(), []
    start = learner(max_iter=4).start(CHAIN, data, RNG)
    tables = learner(max_iter=4).improve(start, data, seen.append)
    assert len(seen) == 4
    np.testing.assert_array_equal(seen[-1].cells, tables.cells)
    for n_iter, iterate in enumerate(seen, start=1):
        np.testing.assert_array_equal(iterate.cells, learner(max_iter=n_iter).fit(CHAIN, data, RNG).cells)
    stopped = learner(max_iter=4).improve(start, data, lambda iterate: True)
    np.testing.assert_array_equal(stopped.cells, seen[0].cells)


@pytest.mark.parametrize("weight", [None, np.arange(80) % 3, np.full(80, 0.1)], ids=["plain", "weighted", "light"])
@pytest.mark.parametrize("method", [ConjugateGradient, LBFGS, ExtendedBaumWelch])
def test_batch_learners_keep_the_mean_loss_of_every_iterate(method, weight):
    data, seen = random_data(weight=weight), []
    learner = method(loss=ConditionalNLL(), max_iter=4)
    start = learner.start(CHAIN, data, RNG)
    learner.improve(start, data, seen.append)
    objective = Objective(start.layout, data, ConditionalNLL())
    expected = [objective(tables.cells)[0] for tables in (start, *seen)]
    assert [iteration.loss for iteration in learner.history_] == pytest.approx(expected, rel=1e-12)
    assert [iteration.score for iteration in learner.history_] == [-iteration.loss for iteration in learner.history_]
    assert [iteration.step for iteration in learner.history_] == [0, 1, 2, 3, 4]
    evaluations = [iteration.n_evaluations for iteration in learner.history_]
    assert evaluations[0] == 1
    assert (np.diff(evaluations) >= 1).all()  # a line search may evaluate several points
    assert (learner.n_iter_, learner.converged_) == (4, False)
    tol = 1.01 * np.abs(objective(seen[1].cells)[1]).max()
    converged = method(loss=ConditionalNLL(), max_iter=4, tol=tol)
    converged.fit(CHAIN, data, RNG)
    assert converged.converged_
    assert converged.n_iter_ <= 2
    assert converged.history_ == learner.history_[: converged.n_iter_ + 1]


def test_stochastic_gradient_keeps_a_report_of_every_epoch():
    learner = StochasticGradient(loss=Hybrid(trade_off=10), n_epochs=7, batch_size=20)
    learner.fit(CHAIN, random_data(), RNG)
    assert learner.n_iter_ == 7
    assert [report.epoch for report in learner.history_] == [1, 2, 3, 4, 5, 6, 7]
    assert learner.history_[-1].loss < learner.history_[0].loss


@pytest.mark.parametrize("weight", [None, np.full(80, 10)], ids=["plain", "weighted"])
@pytest.mark.parametrize("learner", [ConjugateGradient, LBFGS])
def test_the_search_ends_where_the_gradient_of_the_mean_loss_is_small(learner, weight):
    data, loss, tol, seen = random_data(weight=weight), ConditionalNLL(), 1e-4, []
    learner = learner(loss=loss, max_iter=200, tol=tol)
    start = learner.start(CHAIN, data, RNG)
    learner.improve(start, data, seen.append)
    objective = Objective(start.layout, data, loss)
    slopes = [np.abs(objective(tables.cells)[1]).max() for tables in seen]
    assert len(slopes) > 3
    assert min(slopes[:-1]) > tol >= slopes[-1]


LEARNERS = [
    BackOffRidge(max_iter=30),
    ConjugateGradient(max_iter=10),
    LBFGS(max_iter=10),
    ExtendedBaumWelch(max_iter=10),
    StochasticGradient(n_epochs=5),
    ExpectationMaximization(),
]


ITERATIVE = [
    *LEARNERS,
    ConvexRelaxation(),
    CrossTuned(cv=2),
    CrossTuned(learner=LBFGS(max_iter=3), cv=2),
    HybridCV(max_iter=8),
    IntegerBranchAndBound(max_nodes=2),
]


@pytest.mark.parametrize("learner", ITERATIVE, ids=lambda learner: type(learner).__name__)
def test_what_learners_know_has_one_shape(learner):
    if isinstance(learner, ConvexRelaxation):
        pytest.importorskip("cvxpy")
    data = random_data(missing=not isinstance(learner, (ConvexRelaxation, IntegerBranchAndBound)))
    codes = np.where(data.codes == missing_code(data.codes.dtype), np.nan, data.codes).T
    model = BayesNetClassifier(structure=CHAIN, parameters=learner, random_state=0).fit(codes, data.y)
    known, told = model.parameters_, vars(model.parameters_)
    assert not vars(learner).keys() & {"n_iter_", "converged_", "history_"}
    assert type(known.n_iter_) is int
    convergence, entry = (type(None), EpochReport) if isinstance(learner, StochasticGradient) else (bool, Iteration)
    assert type(told.get("converged_")) is convergence
    assert {type(value) for value in told.get("history_", [])} <= {entry}
    assert isinstance(learner, ConvexRelaxation) == ("history_" not in told)
    documented = {attribute.name for attribute in ClassDoc(type(learner))["Attributes"]}
    assert {name for name in told if name.endswith("_")} <= documented


def test_no_learner_is_forgotten():
    learners = {getattr(parameters, name) for name in parameters.__all__} - {BatchLearner, ParameterLearner}
    learners = {learner for learner in learners if hasattr(learner, "fit")}
    counted = {
        FixedCPTs,
        MaximumLikelihood,
        MonotoneLikelihood,
        HierarchicalSmoothing,
        HierarchicalDirichlet,
    }  # tests of their own know the rest
    assert learners == counted | {*map(type, ITERATIVE)}


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_missing_values_are_learnt_from(learner):
    """The middle of the chain is missing in half of the rows; what it tells with its neighbours is used."""
    data = random_data(n=300)
    codes = data.codes.T.astype(int)
    codes[::2, 1] = -1
    gappy = EncodedData.from_codes(codes, data.y, n_states=data.n_states)
    tables = learner.fit(CHAIN, gappy, np.random.default_rng(0))
    start = MaximumLikelihood().fit(CHAIN, gappy, RNG)
    for i in range(3):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1)
    right = (log_joint(tables, CHAIN, gappy.codes).argmax(axis=1) == data.y).mean()
    assert right >= (log_joint(start, CHAIN, gappy.codes).argmax(axis=1) == data.y).mean()
    assert not np.allclose(tables.cells, start.cells)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_a_feature_that_is_always_missing_changes_nothing(learner):
    data = random_data()
    codes = data.codes.T.astype(int)
    codes[:, 2] = -1
    blind = EncodedData.from_codes(codes, data.y, n_states=data.n_states)
    without = EncodedData.from_codes(codes[:, :2], data.y, n_states=data.n_states[:2])
    learner = clone(learner).set_params(init="maximum-likelihood") if hasattr(learner, "init") else learner
    ours = learner.fit(CHAIN, blind, np.random.default_rng(0)).cells
    theirs = learner.fit(Structure([-1, 0]), without, np.random.default_rng(0)).cells
    # Mini-batches differ in their draws of noise, and float32 in its sums.
    tolerance = 0.2 if isinstance(learner, StochasticGradient) else 1e-8
    np.testing.assert_allclose(ours[: len(theirs)], theirs, atol=tolerance)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (MaximumLikelihood(alpha=-1), "'alpha' parameter of MaximumLikelihood"),
        (MaximumLikelihood(epsilon=0), "'epsilon' parameter"),
        (MaximumLikelihood(shrinkage=-1), "'shrinkage' parameter of MaximumLikelihood"),
        (ConjugateGradient(max_iter=0), "'max_iter' parameter"),
        (LBFGS(alpha=0), "'alpha' parameter of LBFGS"),
        (LBFGS(epsilon=1), "'epsilon' parameter of LBFGS"),
        (StochasticGradient(init="zeros"), "'init' parameter"),
        (StochasticGradient(loss=Hybrid(trade_off=-1)), "'trade_off' parameter of Hybrid"),
    ],
)
def test_bad_parameters_are_named(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(CHAIN, random_data(), RNG)


def test_a_class_is_no_loss():
    with pytest.raises(TypeError, match=r"Pass Hybrid\(\) instead"):
        StochasticGradient(loss=Hybrid).fit(CHAIN, random_data(), RNG)


def test_nested_parameters():
    learner = clone(ConjugateGradient(loss=Margin())).set_params(loss__kappa=0.1)
    assert learner.loss.kappa == 0.1


def test_weights_that_are_lost_beside_alpha_are_told():
    data = random_data(weight=np.full(80, 1e-12))
    with pytest.warns(UserWarning, match=r"80 rows sum to 8e-11, which is negligible compared with alpha=1\.0\."):
        MaximumLikelihood().fit(CHAIN, data, RNG)
    found, expected = (MaximumLikelihood(alpha=0).fit(CHAIN, rows, RNG).cells for rows in (data, random_data()))
    np.testing.assert_allclose(found, expected)

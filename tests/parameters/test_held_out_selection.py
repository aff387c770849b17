"""Choices by held-out rows against an exhaustive search with scikit-learn and SciPy, and their rules."""

import json
from copy import copy
from dataclasses import astuple
from threading import Lock

import numpy as np
import pytest
from oracles import calibration as oracle
from oracles import held_out as held_out_oracle
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    Calibration,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    EncodedData,
    ExtendedBaumWelch,
    GradientTraining,
    Hybrid,
    HybridCV,
    Margin,
    MaximumLikelihood,
    NaiveBayesClassifier,
    SoftHybrid,
    StochasticGradient,
    Structure,
    TANClassifier,
    load,
    read_bif,
    read_xmlbif,
    write_bif,
    write_xmlbif,
)
from tanlearn.models.tables import Tables
from tanlearn.parameters import held_out_selection
from tanlearn.parameters.held_out_selection import (
    TOLERANCE,
    ScheduledCallback,
    after_iterations,
    choose,
    evaluation_iterations,
    held_out_parts,
)
from tanlearn.parameters.hybrid_cv import MINI_BATCH_LOSS
from tanlearn.structures.table_layout import TableLayout

CHAIN = Structure([-1, 0, 1])
LOSSES = [ConditionalNLL(), Margin(scale=0.5), SoftHybrid(trade_off=3, gamma=2, eta=0.5)]


def noisy_data(n=90, weight=None, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = (y[:, np.newaxis] + rng.integers(0, 3, (n, 3)) * (rng.random((n, 3)) < 0.6)) % 3
    return EncodedData.from_codes(X, y, n_states=[3, 3, 3], n_classes=3, sample_weight=weight)


def scores_of(learner, n_iter, train, rows):
    """Return the log joint of rows by a learner that has seen others, after so many iterations."""
    learner = clone(learner).set_params(max_iter=max(n_iter, 1), calibrate=False)
    tables = (learner if n_iter else MaximumLikelihood()).fit(CHAIN, train, np.random.default_rng(0))
    return tables.layout.log_joint(rows.codes, tables.cells)


def smoothed_log_loss(log_temperature, scores, y, weights, share):
    """Return the summed log loss where a share of every row's weight belongs to all classes alike, too."""
    log_p = log_softmax(scores / np.exp(log_temperature), axis=1)
    return -(weights * (log_p[np.arange(len(y)), y] + share * log_p.mean(axis=1))).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_choice_is_that_of_an_exhaustive_search(weighted, monkeypatch):
    monkeypatch.setattr("tanlearn.parameters.held_out_calibration.NATS", np.inf)  # a temperature alone
    data = noisy_data(weight=np.random.default_rng(5).integers(1, 4, 90) if weighted else None)
    parts = held_out_parts(data, 3)
    learners = [LBFGS(loss=loss) for loss in LOSSES]
    choice = choose(learners, CHAIN, parts, iterations=evaluation_iterations(9), patience=None)
    assert choice.iterations.tolist() == [0, 1, 2, 3, 5, 8, 9]
    y, weights = (np.concatenate([getattr(rows, name) for _, rows in parts]) for name in ("y", "weights"))
    n = weights.sum()
    errors, losses, temperatures = np.empty((3, 3, 7))
    for i, learner in enumerate(learners):
        for j, n_iter in enumerate(choice.iterations):
            scores = np.concatenate([scores_of(learner, n_iter, *part) for part in parts])
            errors[i, j] = weights[scores.argmax(axis=1) != y].sum() / n
            best = minimize_scalar(
                smoothed_log_loss, bounds=(-2, 5), method="bounded", args=(scores, y, weights, 1 / n)
            )
            losses[i, j], temperatures[i, j] = best.fun / n, np.exp(best.x)
    np.testing.assert_allclose(choice.errors, errors, rtol=1e-12)
    np.testing.assert_allclose(choice.log_losses, losses, rtol=0.01)  # measured at temperatures a step of 1.4 apart
    assert (choice.log_losses > losses * (1 - 1e-9)).all()
    least = errors.min()
    eligible = errors <= least + TOLERANCE * np.sqrt(least * (1 - least) / n)
    i, j = np.unravel_index(np.where(eligible, choice.log_losses, np.inf).argmin(), errors.shape)
    assert (choice.index, choice.n_iter) == (i, choice.iterations[j])
    assert weighted or eligible.sum() > 1
    assert choice.calibration.temperature == pytest.approx(temperatures[i, j], rel=0.05)
    assert choice.calibration.power == 1
    share = [rows.weights.sum() for _, rows in parts]
    np.testing.assert_allclose(np.average(choice.split_errors, axis=0, weights=share), errors, rtol=1e-12)


def test_among_those_that_err_hardly_more_the_best_probabilities_decide():
    errors = np.array([[0.30, 0.10], [0.11, 0.12]])
    log_losses = np.array([[0.1, 0.9], [0.8, 0.2]])
    standard_error = np.sqrt(0.1 * 0.9 / 1000)
    assert TOLERANCE * standard_error < 0.01  # of 1,000 rows, one point more is more
    assert held_out_selection._best(errors, log_losses, 1000) == (0, 1)
    assert TOLERANCE * np.sqrt(0.1 * 0.9 / 50) > 0.02  # of 50 it is nothing
    assert held_out_selection._best(errors, log_losses, 50) == (1, 1)
    assert held_out_selection._best(np.array([[0.02, 0.0]]), np.array([[0.1, 0.2]]), 100) == (0, 1)


def test_parts_are_folds_of_small_tables_and_a_fifth_of_large_ones():
    for n, width, expected in (
        (3, 10**5, [1] * 3),
        (300, 500, [60] * 5),
        (300, 501, [100] * 3),
        (300, 5000, [100] * 3),
        (300, 5001, [60]),
    ):
        y = np.arange(n) % 2
        table = EncodedData.from_codes(np.broadcast_to(y[:, np.newaxis], (n, width)), y)
        parts = held_out_parts(table)
        assert sorted((rows.n_samples for _, rows in parts), reverse=True) == expected
        assert all(train.n_samples + rows.n_samples == n for train, rows in parts)
    one = EncodedData.from_codes([[0], [1]], [0, 1], sample_weight=[1, 0])
    assert held_out_parts(one) == []


def test_a_run_without_gain_ends_and_stays_where_it_is():
    data = noisy_data(400)
    parts = held_out_parts(data, 4)
    arguments = [LBFGS(loss=ConditionalNLL())], CHAIN, parts
    full = choose(*arguments, iterations=evaluation_iterations(100), patience=None)
    short = choose(*arguments, iterations=evaluation_iterations(100), patience=5)
    n = short.errors.shape[1]
    assert n < full.errors.shape[1]
    assert short.iterations.tolist() == full.iterations[:n].tolist()
    same = np.flatnonzero(short.iterations <= 5)  # no run ends before
    np.testing.assert_array_equal(short.errors[:, same], full.errors[:, same])


def test_cpts_are_computed_only_where_they_are_evaluated():
    computed, evaluated = [], []
    callback = ScheduledCallback([0, 2, 3, 7], lambda tables: bool(evaluated.append(tables)) or tables == 7)
    report = after_iterations(callback, lambda n: computed.append(n) or n)
    assert [report(n) for n in range(1, 8)] == [False] * 6 + [True]
    assert computed == evaluated == [2, 3, 7]
    assert callback.n_done == 7
    assert after_iterations(None, None) is None
    every = after_iterations(lambda n: n > 1, lambda n: n)
    assert [every(1), every(2)] == [False, True]


class Scripted:
    """A learner with given tables after each iteration on each part; it ends with the last of them."""

    needs = "gradients"

    def __init__(self, cells):
        self.cells = cells

    def start(self, structure, data, rng):
        self.own = [
            Tables(TableLayout.of_parents(structure.parents, data.n_states, 3), c) for c in self.cells[data.y[0]]
        ]
        return self.own[0]

    def improve(self, tables, data, callback, *, n_iter):
        for tables in self.own[1 : n_iter + 1]:
            if callback(tables):
                break
        return tables


@pytest.mark.parametrize("iterations", [evaluation_iterations(9), [1, 4, 7], [3], [0, 2, 20]])
@pytest.mark.parametrize("patience", [None, 2])
def test_paths_are_followed_and_chosen_from_as_by_the_oracle(iterations, patience):
    """Random scores. Some paths end at an evaluation, others between two, before the first, or by patience."""
    rng, ends = np.random.default_rng(0), set()
    for _ in range(3):
        y, weight = rng.integers(0, 3, (2, 12)), rng.integers(1, 4, (2, 12))
        # The value of the feature is the row number, so that a table can contain any scores.
        parts = []
        for k in range(2):
            sizes = {"n_states": [12], "n_classes": 3}
            rows = EncodedData.from_codes(np.arange(12)[:, np.newaxis], y[k], sample_weight=weight[k], **sizes)
            parts.append((EncodedData.from_codes([[0]] * 3, [k, 1, 2], **sizes), rows))
        quality = rng.uniform(0.0, 1.0, 3)
        paths = [
            [
                [own * np.eye(3)[y[k]] * min(n, 3) + rng.normal(size=(12, 3)) for n in range(rng.integers(1, 12))]
                for k in range(2)
            ]
            for own in quality
        ]
        learners = [Scripted([[np.append(np.zeros(3), s) for s in own] for own in of_parts]) for of_parts in paths]
        choice = choose(learners, Structure([-1]), parts, iterations=iterations, patience=patience)
        index, look, errors, losses, alone = held_out_oracle.choose(
            paths, y, weight, iterations, patience, held_out_selection.TEMPERATURES
        )
        np.testing.assert_allclose(choice.errors, errors, rtol=1e-12)
        np.testing.assert_allclose(choice.log_losses, losses, rtol=1e-9)
        assert (choice.index, choice.n_iter) == (index, iterations[look])
        assert choice.iterations.tolist() == iterations[: len(errors[0])]
        alone[index] = look
        assert choice.best_evaluations.tolist() == alone
        ends |= {len(own) - 1 in iterations for of_parts in paths for own in of_parts}
    assert ends == {True, False}


def test_a_run_that_has_converged_is_looked_at_where_it_ended():
    data = noisy_data(30)
    parts = held_out_parts(data, 3)
    learner = LBFGS(loss=SoftHybrid(trade_off=0.1), tol=1e-3)
    choice = choose([learner], CHAIN, parts, iterations=[0, 90], patience=None)
    ends = [clone(learner).set_params(max_iter=90, calibrate=False) for _ in parts]
    for end, (train, rows), error in zip(ends, parts, choice.split_errors[:, 0, 1], strict=True):
        tables = end.fit(CHAIN, train, np.random.default_rng(0))
        assert end.converged_
        assert end.n_iter_ < 90
        wrong = tables.layout.log_joint(rows.codes, tables.cells).argmax(axis=1) != rows.y
        assert error == pytest.approx(wrong.mean())


def test_rows_that_are_all_right_make_nobody_certain():
    y = np.arange(40) % 2
    data = EncodedData.from_codes(np.stack([y, 1 - y, y], axis=1), y)
    for learner in (ConjugateGradient(), StochasticGradient(n_epochs=5), HybridCV(), CrossTuned()):
        learner.fit(CHAIN, data, np.random.default_rng(0))
        assert 0.1 < learner.calibration_.temperature < 100
    model = BayesNetClassifier(structure=CHAIN, parameters=HybridCV(), random_state=0).fit(data.codes.T, y)
    assert 1e-5 < 1 - model.predict_proba(data.codes.T).max() < 0.05


def test_temperature_is_the_lowest_point_also_between_those_measured():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(400, 3)) * 6
    p = np.exp(log_softmax(scores / 3.3, axis=1))
    y = np.array([rng.choice(3, p=row) for row in p])
    losses = held_out_selection.log_loss_by_temperature(scores, y, np.ones(400))
    best = minimize_scalar(smoothed_log_loss, bounds=(-2, 5), method="bounded", args=(scores, y, np.ones(400), 0.0))
    assert held_out_selection._lowest(losses) == pytest.approx(np.exp(best.x), rel=0.05)
    for k, temperature in enumerate(held_out_selection.TEMPERATURES):
        expected = smoothed_log_loss(np.log(temperature), scores, y, np.ones(400), 0.0)
        assert losses[k] == pytest.approx(expected, rel=1e-12)
    assert held_out_selection._lowest(np.arange(19.0)) == held_out_selection.TEMPERATURES[0]
    assert held_out_selection._lowest(-np.arange(19.0)) == held_out_selection.TEMPERATURES[-1]


@pytest.mark.parametrize(
    "learner",
    [ConjugateGradient(), LBFGS(loss=ConditionalNLL(), max_iter=6), StochasticGradient(n_epochs=4), HybridCV()],
    ids=repr,
)
def test_calibration_changes_probabilities_and_not_classes(learner):
    data = noisy_data(300)
    X = data.codes.T
    plain = BayesNetClassifier(structure=CHAIN, parameters=clone(learner).set_params(calibrate=False), random_state=0)
    scaled = BayesNetClassifier(structure=CHAIN, parameters=learner, random_state=0)
    plain.fit(X, data.y), scaled.fit(X, data.y)
    np.testing.assert_array_equal(scaled.tables_.cells, plain.tables_.cells)
    np.testing.assert_array_equal(scaled.predict(X), plain.predict(X))
    assert plain.calibration_ == plain.parameters_.calibration_ == Calibration()
    assert scaled.calibration_ == scaled.parameters_.calibration_ != Calibration()
    scores = plain.predict_joint_log_proba(X).tolist()
    expected = np.log([oracle.probabilities(row, *astuple(scaled.calibration_)) for row in scores])
    np.testing.assert_allclose(scaled.predict_log_proba(X), expected, atol=1e-12)


def test_iterations_that_nobody_names_are_chosen():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 3))
    data = EncodedData.from_codes(X, (X[:, 0] ^ X[:, 1]) ^ (rng.random(300) < 0.1))
    for method in (ConjugateGradient, LBFGS):
        learner = method(loss=ConditionalNLL())
        tables = learner.fit(CHAIN, data, np.random.default_rng(0))
        parts = held_out_parts(data)
        choice = choose([learner], CHAIN, parts, iterations=evaluation_iterations(100))
        assert (learner.n_iter_, learner.calibration_) == (choice.n_iter, choice.calibration)
        named = method(loss=ConditionalNLL(), max_iter=choice.n_iter, calibrate=False)
        np.testing.assert_array_equal(tables.cells, named.fit(CHAIN, data, np.random.default_rng(0)).cells)
        assert learner.max_iter is None


def test_hybrid_cv_keeps_a_table_of_its_learners():
    data = noisy_data(200)
    learners = [LBFGS(loss=loss) for loss in LOSSES]
    chosen = HybridCV(learners=learners, cv=4, max_iter=20)
    tables = chosen.fit(CHAIN, data, np.random.default_rng(0))
    table = chosen.cv_results_
    assert [setting["learner"].loss.get_params() for setting in table["params"]] == [one.get_params() for one in LOSSES]
    assert chosen.best_params_ == table["params"][chosen.best_index_]
    assert chosen.loss_ is chosen.learner_.loss
    assert all(one.calibrate and not hasattr(one, "n_iter_") for one in learners)  # those of the user stay as they are
    assert table["best_n_iter"][chosen.best_index_] == chosen.best_n_iter_ > 0
    assert table["mean_test_score"][chosen.best_index_] == chosen.best_score_
    assert (table["mean_log_loss"] > 0).all()
    splits = [table[f"split{k}_test_score"] for k in range(4)]
    share = [rows.n_samples for _, rows in held_out_parts(data, 4)]
    np.testing.assert_allclose(np.average(splits, axis=0, weights=share), table["mean_test_score"])
    for i, learner in enumerate(learners):  # each at its best, as if it were the only one
        alone = HybridCV(learners=[learner], cv=4, max_iter=20)
        alone.fit(CHAIN, data, np.random.default_rng(0))
        if i != chosen.best_index_:
            assert alone.best_n_iter_ == table["best_n_iter"][i]
            assert alone.best_score_ == table["mean_test_score"][i]
    named = LBFGS(loss=chosen.loss_, max_iter=chosen.best_n_iter_, calibrate=False)
    np.testing.assert_array_equal(tables.cells, named.fit(CHAIN, data, np.random.default_rng(0)).cells)
    assert (chosen.n_iter_, chosen.converged_, chosen.history_) == (named.n_iter_, named.converged_, named.history_)


def test_mini_batches_are_chosen_like_others():
    data = noisy_data(200)
    learner = StochasticGradient(n_epochs=6, batch_size=20, learning_rate=0.1)
    even = LBFGS(loss=ConditionalNLL(), alpha=1e6, tol=1e9)  # stays where it starts, at nearly even frequencies
    for learners in ([learner], [even, learner]):
        chosen = HybridCV(learners=learners, max_iter=1, cv=0.3)
        tables = chosen.fit(CHAIN, data, np.random.default_rng(7))
        assert chosen.best_index_ == len(learners) - 1
        assert chosen.cv_results_["best_n_iter"][-1] == chosen.best_n_iter_ == chosen.n_iter_ == 6
        assert len(chosen.history_) == 6
        plain = clone(learner).set_params(calibrate=False).fit(CHAIN, data, np.random.default_rng(7))
        np.testing.assert_array_equal(tables.cells, plain.cells)
        parts = held_out_parts(data, 0.3)
        again = clone(chosen).fit_on_parts(CHAIN, data, parts, rng=np.random.default_rng(0), trained=tables)
        assert again is tables


def test_threads_decide_nothing():
    data = noisy_data(200)
    models = []
    for n_jobs in (1, 3):
        learner = HybridCV(n_jobs=n_jobs)
        models.append((learner.fit(CHAIN, data, np.random.default_rng(0)).cells, learner.calibration_))
    np.testing.assert_array_equal(models[0][0], models[1][0])
    assert models[0][1] == models[1][1]


def test_what_can_be_learnt_without_error_is():
    """Features of which each tells nothing alone: the class is whether two of them agree."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 4))
    y = X[:, 0] ^ X[:, 1]
    model = BayesNetClassifier(structure=Structure([-1, 0, -1, -1]), parameters=HybridCV(), random_state=0).fit(X, y)
    assert model.score(X, y) == 1
    noise = rng.integers(0, 2, 400)
    guess = NaiveBayesClassifier(parameters=HybridCV(), random_state=0).fit(X, noise)
    assert abs(guess.predict_proba(X) - 0.5).max() < 0.2  # nothing to be learnt, nothing to be sure of


def test_hybrid_cv_says_what_it_has_chosen(capsys):
    HybridCV(verbose=1, max_iter=5).fit(CHAIN, noisy_data(), np.random.default_rng(0))
    assert "chosen on held-out rows: " in (said := capsys.readouterr().out)
    assert "SoftHybrid(" in said


@pytest.mark.parametrize(
    ("learner", "rows", "message"),
    [
        (HybridCV(learners=[]), 90, r"needs at least one learner and two rows .* got learners=\[\] and 90 row"),
        (HybridCV(), 1, r"two rows of positive weight, got .* and 1 row\(s\)\. .* use MaximumLikelihood\(\)"),
        (HybridCV(cv=7), 5, "7 folds need at least 7 rows"),
        (HybridCV(cv=1.5), 90, "The 'cv' parameter of HybridCV must be"),
        (HybridCV(cv="5"), 90, "The 'cv' parameter of HybridCV must be"),
        (HybridCV(max_iter=0), 90, "The 'max_iter' parameter of HybridCV must be"),
    ],
)
def test_bad_input_is_named(learner, rows, message):
    data = noisy_data()
    with pytest.raises(ValueError, match=message):
        learner.fit(CHAIN, data.take(np.arange(rows)), np.random.default_rng(0))


def test_hybrid_losses_of_gradient_tan_have_their_place(tmp_path):
    """What the user names is trained as ever; what is left open is chosen, for the same structure."""
    data = noisy_data(300)
    X = data.codes.T
    settings = {"n_epochs": 8, "training": GradientTraining(batch_size=50), "random_state": 0}
    plain = TANClassifier(loss=Hybrid(), calibrate=False, **settings).fit(X, data.y)
    named = TANClassifier(loss=Hybrid(), **settings).fit(X, data.y)
    np.testing.assert_array_equal(named.tables_.cells, plain.tables_.cells)
    assert (plain.calibration_, plain.loss_.get_params()) == (Calibration(), Hybrid().get_params())
    assert named.calibration_ != Calibration()
    assert not hasattr(named, "parameters_")
    chosen = TANClassifier(**settings).fit(X, data.y)
    softly = TANClassifier(loss=MINI_BATCH_LOSS, calibrate=False, **settings).fit(X, data.y)
    assert chosen.structure_ == softly.structure_
    assert chosen.history_ == softly.history_
    assert chosen.loss_ is chosen.parameters_.loss_
    assert chosen.calibration_ == chosen.parameters_.calibration_
    is_kept = chosen.parameters_.best_index_ == 3
    assert is_kept == bool((chosen.tables_.cells == softly.tables_.cells).all())
    rounded = TANClassifier(bits=(3, 2), **settings).fit(X, data.y)
    assert rounded.tables_.bits == (3, 2)
    assert rounded.loss_.get_params() == Hybrid().get_params()
    watched = TANClassifier(**settings).set_params(training__validation_fraction=0.3).fit(X, data.y)
    assert watched.parameters_.cv_results_.keys() >= {"split0_test_score"}
    assert "split1_test_score" not in watched.parameters_.cv_results_


def test_structures_of_small_tables_get_steps_at_a_rate_of_their_own():
    data = noisy_data(300)
    X = data.codes.T
    chosen = TANClassifier(random_state=0).fit(X, data.y)
    assert chosen.n_epochs_ == chosen.n_iter_ == len(chosen.history_) == 667  # of three steps
    assert chosen.history_[0].learning_rate == pytest.approx(0.1)
    mini_batches = chosen.parameters_.learners[-1]  # not so the tables that compete
    assert (mini_batches.n_epochs, mini_batches.learning_rate) == (100, 0.01)
    slow = TANClassifier(training=GradientTraining(learning_rate=0.03), random_state=0).fit(X, data.y)
    assert (slow.n_epochs_, slow.history_[0].learning_rate) == (667, pytest.approx(0.03))
    holed = X.astype(float)
    holed[0, 0] = np.nan  # what is slow is not made longer
    assert TANClassifier(calibrate=False, random_state=0).fit(holed, data.y).n_epochs_ == 100
    for settings, n_epochs in (({"n_epochs": 5}, 5), ({"loss": Hybrid()}, 100), ({"bits": (3, 1)}, 100), ({}, 100)):
        batch_size = 100 if settings else 15  # twenty steps an epoch
        training = GradientTraining(batch_size=batch_size)
        model = TANClassifier(training=training, calibrate=False, random_state=0, **settings).fit(X, data.y)
        assert (model.n_epochs_, model.history_[0].learning_rate) == (n_epochs, pytest.approx(0.01))


def test_tables_of_mini_batches_that_are_chosen_are_those_that_were_trained(monkeypatch):
    monkeypatch.setattr("tanlearn.parameters.held_out_selection._best", lambda errors, *others: (len(errors) - 1, 0))
    data = noisy_data(300)
    settings = {"n_epochs": 4, "training": GradientTraining(batch_size=50), "random_state": 0}
    chosen = TANClassifier(**settings).fit(data.codes.T, data.y)
    assert isinstance(chosen.parameters_.learner_, StochasticGradient)
    softly = TANClassifier(loss=MINI_BATCH_LOSS, calibrate=False, **settings).fit(data.codes.T, data.y)
    np.testing.assert_array_equal(chosen.tables_.cells, softly.tables_.cells)


@pytest.mark.parametrize("model", [TANClassifier(n_epochs=3), NaiveBayesClassifier(parameters=HybridCV())], ids=repr)
def test_files_and_descriptions_know_what_was_chosen(model, tmp_path):
    data = noisy_data(200)
    X = data.codes.T.astype(float)
    model.set_params(random_state=0).fit(X, data.y)
    assert model.calibration_ != Calibration()
    model.calibration_ = Calibration(model.calibration_.temperature, power=0.75, pivot=3)
    description = json.loads(json.dumps(model.describe()))
    assert description["calibration"] == {"temperature": model.calibration_.temperature, "power": 0.75, "pivot": 3.0}
    assert description["training"] == {"loss": repr(model.parameters_.loss_), "n_iter": model.parameters_.n_iter_}
    model.save(tmp_path / "model.tan")
    write_bif(model, tmp_path / "model.bif")
    write_xmlbif(model, tmp_path / "model.bifxml")
    for found in (
        load(tmp_path / "model.tan"),
        read_bif(tmp_path / "model.bif"),
        read_xmlbif(tmp_path / "model.bifxml"),
    ):
        assert found.calibration_ == model.calibration_
        np.testing.assert_array_equal(found.predict_proba(X), model.predict_proba(X))
    assert repr(getattr(load(tmp_path / "model.tan"), "loss_", None)) == repr(getattr(model, "loss_", None))
    with pytest.raises(ValueError, match=r"power of a calibration must be a positive number, got -1\.0"):
        copy(model)._set_state({**model._get_state(), "calibration": {"power": -1.0}})


def test_another_prior_leaves_out_the_power():
    """A counted prior is what comes out where nothing is known, whatever the temperature is."""
    data = noisy_data(300)
    X = data.codes.T.astype(float)
    prior = [0.7, 0.2, 0.1]
    model = NaiveBayesClassifier(parameters=HybridCV(), class_prior=prior).fit(X, data.y)
    assert model.calibration_ != Calibration()
    assert model.calibration_.power == 1
    counted = NaiveBayesClassifier().fit(X, data.y)
    for one in (model, counted):
        one.calibration_ = Calibration(temperature=2.0, power=0.7, pivot=5.0)
        other = one.with_class_prior(prior)
        assert other.calibration_ == Calibration(2.0)
        np.testing.assert_array_equal(one.predict_proba(X).argmax(axis=1), one.predict(X))
    np.testing.assert_allclose(other.predict_proba([[None] * 3]), [prior], rtol=1e-9)


def test_large_tables_of_many_small_classes_have_rows_to_hold_out():
    y = np.arange(120) // 2
    table = EncodedData.from_codes(np.broadcast_to(y[:, np.newaxis] % 2, (120, 500)), y)
    ((train, rows),) = held_out_parts(table)
    assert (train.n_samples, rows.n_samples) == (96, 24)


def best_temperature(model, data):
    """Return the temperature that suits rows best, and the log loss at it and at the model's."""
    scores = model.model_.log_joint(data.codes)

    def log_loss(log_temperature):
        return smoothed_log_loss(log_temperature, scores, data.y, data.weights, 0.0) / data.n_samples

    best = minimize_scalar(log_loss, bounds=(-2, 5), method="bounded")
    return np.exp(best.x), best.fun, log_loss(np.log(model.calibration_.temperature))


def test_temperature_of_a_warm_start_is_that_of_all_its_epochs():
    data, unseen = noisy_data(600), noisy_data(4000, seed=2)
    model = TANClassifier(
        candidates="all",
        loss=Hybrid(trade_off=30),
        training=GradientTraining(learning_rate=0.05),
        warm_start=True,
        random_state=0,
    )
    model.fit_encoded(data).set_params(n_epochs=2).fit_encoded(data)
    assert model.n_epochs_ == 2
    _, least, found = best_temperature(model, unseen)
    assert found < 1.02 * least


@pytest.mark.parametrize("loss", [Hybrid(), None])
def test_rows_that_training_watches_judge_what_was_trained(loss, monkeypatch):
    monkeypatch.setattr("tanlearn.parameters.held_out_selection._best", lambda errors, *others: (len(errors) - 1, 0))
    data, watched = noisy_data(300), noisy_data(200, seed=2)
    model = TANClassifier(
        loss=loss, training=GradientTraining(patience=3, validation_fraction=0.5, batch_size=50), random_state=0
    )
    model.fit_encoded(data, watched)
    scores = model.model_.log_joint(watched.codes)
    losses = held_out_selection.log_loss_by_temperature(scores, watched.y, watched.weights, 1 / 200)
    assert model.calibration_.temperature == pytest.approx(held_out_selection._lowest(losses), rel=0.05)
    assert model.calibration_.power == 1


class OwnLoss:
    """The squared distance of scores to three times the class, by an object that cannot be copied."""

    def __init__(self):
        self.lock = Lock()

    def value_and_gradient(self, scores, y):
        d_scores = scores - 3.0 * (np.arange(scores.shape[1]) == y[:, np.newaxis])
        return 0.5 * (d_scores**2).sum(axis=1), d_scores


def test_a_loss_of_the_users_own_is_calibrated_and_not_saved(tmp_path):
    data = noisy_data(100)
    X = data.codes.T.astype(float)
    model = TANClassifier(loss=OwnLoss(), n_epochs=2, random_state=0).fit(X, data.y)
    assert model.calibration_ != Calibration()
    model.set_params(loss=None).save(tmp_path / "model.tan")
    np.testing.assert_array_equal(load(tmp_path / "model.tan").predict_proba(X), model.predict_proba(X))


def test_a_fit_that_ends_while_held_out_rows_choose_leaves_no_model(monkeypatch):
    data = noisy_data(100)
    X = data.codes.T
    monkeypatch.setattr(HybridCV, "fit_on_parts", lambda *arguments, **options: 1 / 0)
    model = TANClassifier(n_epochs=2)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, data.y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_losses_by_default_are_named():
    data = noisy_data(100)
    X = data.codes.T
    for learner in (ConjugateGradient(), StochasticGradient(n_epochs=2), HybridCV(learners=[ExtendedBaumWelch()])):
        model = NaiveBayesClassifier(parameters=learner, random_state=0).fit(X, data.y)
        kind = learner.learners[0] if isinstance(learner, HybridCV) else learner
        assert model.describe()["training"]["loss"] == repr(type(kind).default_loss())
    assert NaiveBayesClassifier().fit(X, data.y).describe()["training"] == {"loss": None, "n_iter": None}


def test_learners_of_another_kind_are_refused_before_work():
    for learner in (MaximumLikelihood(), CrossTuned()):
        with pytest.raises(TypeError, match=r"learners must be instances of ConjugateGradient, .* got (Max|Cross)"):
            HybridCV(learners=[learner]).fit(CHAIN, noisy_data(), np.random.default_rng(0))


@pytest.mark.parametrize(("least", "n_rows"), [(0.1, 400), (0.5, 64), (0.0, 100), (0.001, 100)])
def test_eligible_errors_end_one_standard_error_above_the_least(least, n_rows):
    standard_error = max(np.sqrt(least * (1 - least) / n_rows), 1 / n_rows)
    for factor, expected in ((0.999, (1, 0)), (1.001, (0, 0))):
        errors, log_losses = np.array([[least], [least + factor * standard_error]]), np.array([[0.2], [0.1]])
        assert held_out_selection._best(errors, log_losses, n_rows) == expected


@pytest.mark.parametrize(("factor", "expected"), [(None, 60), (4, 240), (4.0, 240), (0.25, 60), (1e-6, 60)])
def test_a_choice_counts_rows_by_their_weights_and_light_ones_as_rows(monkeypatch, factor, expected):
    """The number of rows sets the standard error and the smoothing, and weights go to calibration on the same scale."""
    weight = None if factor is None else np.full(60, factor)
    seen, best, calibrate = {}, held_out_selection._best, held_out_selection.calibrate

    def watch_best(errors, log_losses, n_rows):
        seen.setdefault("n_rows", n_rows)
        return best(errors, log_losses, n_rows)

    def watch_calibrate(distances, y, weights, temperature):
        seen["total"] = weights.sum()
        return calibrate(distances, y, weights, temperature)

    monkeypatch.setattr("tanlearn.parameters.held_out_selection._best", watch_best)
    monkeypatch.setattr("tanlearn.parameters.held_out_selection.calibrate", watch_calibrate)
    parts = held_out_parts(noisy_data(60, weight), 3)
    choice = choose([MaximumLikelihood()], CHAIN, parts)
    assert seen["n_rows"] == pytest.approx(expected)
    assert seen["total"] == pytest.approx(expected)
    # The log loss is a mean whose smoothing is one row of all classes alike.
    pairs = [(MaximumLikelihood().fit(CHAIN, train, np.random.default_rng(0)), rows) for train, rows in parts]
    scores = np.concatenate([tables.layout.log_joint(rows.codes, tables.cells) for tables, rows in pairs])
    y = np.concatenate([rows.y for _, rows in pairs])
    logs = [log_softmax(scores / t, axis=1) for t in held_out_selection.TEMPERATURES]
    means = [-(one[np.arange(60), y].mean() + one.mean() / expected) for one in logs]
    assert choice.log_losses[0, 0] == pytest.approx(min(means))

"""Gradient k-trees as users meet them."""

import itertools
import json
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

from tanlearn import (
    BackOffRidge,
    BayesNetClassifier,
    Calibration,
    CandidateSets,
    ConditionalNLL,
    GradientTraining,
    Hybrid,
    InexactMarginalizationWarning,
    KTreeClassifier,
    Margin,
    Structure,
    Tables,
    TANClassifier,
    load,
)
from tanlearn.models.bayes_net import BayesNet

PLAIN = {
    "loss": ConditionalNLL(),
    "n_epochs": 10,
    "training": GradientTraining(batch_size=50),
    "calibrate": False,
    "random_state": 0,
}


def parity(n=600, seed=0, noise=0.0):
    """Return rows whose class is the parity of three of six features."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 6))
    return X, X[:, 0] ^ X[:, 1] ^ X[:, 2] ^ (rng.random(n) < noise)


def holed(X, share=0.15, seed=1):
    X = X.astype(float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


@pytest.mark.parametrize("candidates", ["all", "order-free", "information", [[], [0], [0, 1], [2], [], [4]]], ids=str)
def test_what_needs_two_parents_is_learnt(candidates):
    """One parent a feature is at chance."""
    X, y = parity()
    model = KTreeClassifier(**{**PLAIN, "candidates": candidates, "n_epochs": 60})
    if candidates == "all":
        model.set_params(candidates__ordering=range(6))
    assert model.fit(X, y).score(X, y) == 1.0
    assert model.structure_.is_acyclic
    assert sum({0, 1, 2} == {i, *row} for i, row in enumerate(model.structure_.parents.tolist())) >= 1
    tree = TANClassifier(candidates="order-free", loss=Hybrid(), n_epochs=60, calibrate=False, random_state=0)
    assert tree.fit(X, y).score(X, y) < 0.75


def test_held_out_rows_choose_loss_or_refit():
    X, y = parity(noise=0.1)
    model = KTreeClassifier(n_epochs=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    rivals = model.cv_results_["param_learner"]
    assert [type(one) for one in rivals] == [ConditionalNLL, *[BackOffRidge] * 4]
    assert model.refit_ is None or isinstance(model.refit_, BackOffRidge)
    assert type(model.loss_) is ConditionalNLL
    assert (model.cv_results_["mean_log_loss"] > 0).all()
    scores = model.cv_results_["mean_test_score"]
    assert scores.shape == (5,)
    assert 0.8 < scores.max() < 1  # a tenth of the classes is noise
    splits = np.array(
        [model.cv_results_[name] for name in model.cv_results_ if re.fullmatch("split._test_score", name)]
    )
    assert len(splits) > 1
    np.testing.assert_allclose(splits.mean(axis=0), scores, atol=1e-3)  # of parts that differ by a row at most


def test_without_calibration_held_out_rows_still_choose_the_loss():
    X, y = parity(200, noise=0.1)
    model = KTreeClassifier(n_epochs=3, calibrate=False, random_state=0).fit(X, y)
    assert model.cv_results_["mean_log_loss"].shape == (5,)
    assert model.calibration_ == Calibration()


def test_own_validation_rows_are_the_only_ones_held_out():
    X, y = parity(300, noise=0.1)
    model = KTreeClassifier(n_epochs=3, training=GradientTraining(validation_fraction=0.3), random_state=0).fit(X, y)
    results = model.cv_results_
    assert {name for name in results if name.startswith("split")} == {"split0_test_score"}
    np.testing.assert_array_equal(results["split0_test_score"], results["mean_test_score"])
    np.testing.assert_allclose(90 * results["mean_test_score"] % 1, 0, atol=1e-9)  # of 90 rows


@pytest.mark.parametrize("loss", [None, ConditionalNLL()])
def test_settings_reach_every_training_and_reports_are_those_of_the_last(monkeypatch, tmp_path, loss):
    from tanlearn.estimators import k_tree

    calls, reports = [], []

    def train(bits, data, candidates, loss, settings, rng, **options):
        calls.append((data.n_samples, type(loss), settings, options))
        return train_in_bits(bits, data, candidates, loss, settings, rng, **options)

    train_in_bits = k_tree.train_in_bits
    monkeypatch.setattr(k_tree, "train_in_bits", train)
    X, y = parity(90, noise=0.1)
    given = {"learning_rate": 0.02, "structure_learning_rate": 0.03, "batch_size": 40}
    training = GradientTraining(**given, temperature=(0.9, 0.2), callback=reports.append)
    KTreeClassifier(n_epochs=3, training=training, loss=loss, random_state=0).fit(X, y)
    for _, _, settings, _ in calls:
        assert {name: getattr(settings, name) for name in given} == given
        assert (settings.temperature, settings.patience, settings.terms) == ((0.9, 0.2), None, True)
        assert settings.n_epochs == 3
    assert [n for n, *_ in calls].count(90) == 1
    assert calls[-1][0] == 90
    assert sum("callback" in options for *_, options in calls) == 1
    assert [report.epoch for report in reports] == [1, 2, 3]
    assert {kind for _, kind, *_ in calls} == {ConditionalNLL}


def test_larger_tables_choose_the_loss_on_the_first_split(monkeypatch):
    from tanlearn.estimators import k_tree

    calls = []

    def train(bits, data, candidates, loss, *rest, **options):
        calls.append(type(loss))
        return train_in_bits(bits, data, candidates, loss, *rest, **options)

    train_in_bits = k_tree.train_in_bits
    monkeypatch.setattr(k_tree, "train_in_bits", train)
    monkeypatch.setattr(k_tree, "ONE_LOSS", 0)
    model = KTreeClassifier(n_epochs=3, random_state=0).fit(*parity(90, noise=0.1))
    assert calls[:2] == [ConditionalNLL, Margin]
    assert calls[2:] == [type(model.loss_)] * 5  # on the four other splits, and on all rows
    assert [type(one) for one in model.cv_results_["param_learner"]] == [type(model.loss_), *[BackOffRidge] * 4]
    monkeypatch.setattr(k_tree, "SMALL_SIZE", 0)  # larger data than ONE_LOSS: the comparison is full again
    model.fit(*parity(90, noise=0.1))
    assert [type(one) for one in model.cv_results_["param_learner"]] == [type(model.loss_), *[BackOffRidge] * 4]
    monkeypatch.setattr(k_tree, "ONE_LOSS", 1080)
    model.fit(*parity(90, noise=0.1))
    assert [type(one) for one in model.cv_results_["param_learner"]] == [type(model.loss_), BackOffRidge]


@pytest.mark.parametrize(
    ("options", "size", "n_split"),
    [({}, 0, 50), ({}, 1080, 100), ({"n_epochs": 7}, 0, 7), ({"loss": ConditionalNLL()}, 0, 100)],
)
def test_trainings_of_splits_are_shorter_if_parameters_may_be_fitted_again(options, size, n_split, monkeypatch):
    from tanlearn.estimators import k_tree

    n_epochs = []

    def train(bits, data, candidates, loss, settings, *rest, **more):
        n_epochs.append(settings.n_epochs)
        return train_in_bits(bits, data, candidates, loss, settings, *rest, **more)

    train_in_bits = k_tree.train_in_bits
    monkeypatch.setattr(k_tree, "train_in_bits", train)
    monkeypatch.setattr(k_tree, "N_STEPS", 10)
    monkeypatch.setattr(k_tree, "SHORTER_FROM", size)
    model = KTreeClassifier(random_state=0, **options).fit(*parity(90, noise=0.1))
    assert n_epochs == [n_split] * 5 + [options.get("n_epochs", 100)]
    assert model.n_epochs_ == n_epochs[-1]


@pytest.mark.parametrize(
    ("d", "n_candidates", "most"), [(6, 1, 1), (6, 2, 2), (6, None, 5), (20, None, 10), (30, None, 14), (30, 3, 3)]
)
def test_information_chooses_as_many_candidates_as_asked(d, n_candidates, most):
    rng = np.random.default_rng(0)
    model = KTreeClassifier(**PLAIN).set_params(n_epochs=1, candidates__n_candidates=n_candidates)
    sets = model.fit(rng.integers(0, 2, (60, d)), np.arange(60) % 2).candidates_
    singles = [
        len({j for j in sets.parents[first:last].ravel().tolist() if j >= 0})
        for first, last in itertools.pairwise(sets.group)
    ]
    assert max(singles) == most


def test_a_refit_learns_the_tables_anew():
    """Few rows and loud noise: a strong ridge wins, and the tables are a network's."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (120, 8)), rng.integers(0, 2, 120)
    X[:, 0] = np.where(rng.random(120) < 0.4, y, X[:, 0])
    model = KTreeClassifier(random_state=0).fit(X, y)
    assert isinstance(model.refit_, BackOffRidge)
    assert model.tables_.is_normalized


@pytest.mark.parametrize(("share", "n_rivals"), [(0.03, 5), (0.5, 1)])
def test_tables_with_few_gaps_are_learnt_anew(share, n_rivals, monkeypatch):
    monkeypatch.setattr("tanlearn.estimators.k_tree.MOST_SUMMED", 1_000)
    X, y = parity()
    model = KTreeClassifier(n_epochs=5, random_state=0).fit(holed(X, share), y)
    assert len(model.cv_results_["param_learner"]) == n_rivals
    assert np.isfinite(model.predict_proba(holed(X))).all()


def test_gaps_that_are_dear_in_the_end_leave_what_gradient_has_learnt(monkeypatch):
    """All rows may be tied by another structure than parts of them."""
    X, y = parity()
    X = holed(X, 0.03)
    plain = KTreeClassifier(n_epochs=5, random_state=0)
    learnt_anew = clone(plain).fit(X, y)
    assert isinstance(learnt_anew.refit_, BackOffRidge)  # or nothing would be shown

    def sums_out(structure, data, slack=1):
        return data.n_samples < len(X)

    monkeypatch.setattr("tanlearn.estimators.k_tree._sums_out", sums_out)
    model = clone(plain).fit(X, y)
    monkeypatch.setattr("tanlearn.estimators.k_tree.MOST_NUMBERS", 0)
    by_gradient = clone(plain).fit(X, y)
    assert model.refit_ is None
    np.testing.assert_array_equal(model.predict_proba(X), by_gradient.predict_proba(X))
    assert (model.predict_proba(X) != learnt_anew.predict_proba(X)).any()


@pytest.mark.parametrize(("most", "n_rivals"), [(200 * 6 * 2, 5), (200 * 6 * 2 - 1, 1)])
def test_large_tables_are_not_learnt_anew(monkeypatch, most, n_rivals):
    from tanlearn.estimators import k_tree

    monkeypatch.setattr(k_tree, "MOST_NUMBERS", most)
    X, y = parity(200)
    model = KTreeClassifier(n_epochs=5, random_state=0).fit(X, y)
    assert len(model.cv_results_["param_learner"]) == n_rivals
    assert n_rivals > 1 or model.refit_ is None


def test_gaps_are_left_out_in_training_and_summed_out_afterwards():
    X, y = parity(1200)
    model = KTreeClassifier(**{**PLAIN, "n_epochs": 60}).fit(holed(X), y)
    assert model.score(X, y) == 1.0
    p = model.predict_proba(holed(X, seed=3))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    nothing = model.predict_proba(np.full((1, 6), np.nan))[0]
    np.testing.assert_allclose(nothing, np.bincount(y) / len(y), atol=0.25)


@pytest.mark.parametrize("bits", [(3, 1), (2, 2)])
def test_few_bits_are_trained_for(bits, tmp_path):
    X, y = parity()
    model = KTreeClassifier(**{**PLAIN, "bits": bits, "n_epochs": 60}).fit(X, y)
    assert model.tables_.bits == bits
    assert model.score(X, y) == 1.0
    model.export_c(tmp_path / "parity.h", test_rows=X[:10])
    assert "parity_predict" in (tmp_path / "parity.h").read_text()


def test_rounding_moves_what_is_above_zero():
    """Cells are logarithms up to a number a row, and the format ends at 0."""
    X, y = parity()
    model = KTreeClassifier(**{**PLAIN, "n_epochs": 60}).fit(X, y)
    tables = model.tables_
    model.model_ = BayesNet(model.structure_, Tables(tables.layout, tables.cells + 5.0, is_normalized=False))
    small = model.with_bits((3, 2))
    assert small.score(X, y) == 1.0
    again = small.with_bits((3, 2))
    np.testing.assert_array_equal(again.tables_.magnitudes, small.tables_.magnitudes)


def test_splits_of_bits_are_chosen(capsys):
    X, y = parity()
    model = KTreeClassifier(**{**PLAIN, "bits": 3, "verbose": 1, "n_epochs": 30}).fit(X, y)
    assert sum(model.tables_.bits) == 3
    assert "3 bits:" in capsys.readouterr().out


def test_threads_change_nothing_and_seeds_do():
    X, y = parity(noise=0.1)
    one, two, other = (
        KTreeClassifier(n_epochs=5, n_jobs=n_jobs, random_state=seed, candidates="subset").fit(X, y)
        for n_jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    np.testing.assert_array_equal(one.tables_.cells, two.tables_.cells)
    assert one.calibration_ == two.calibration_
    assert one.candidates_.parents.tolist() != other.candidates_.parents.tolist()


def test_files_keep_what_is_not_normalised(tmp_path):
    X, y = parity()
    model = KTreeClassifier(**PLAIN).fit(X, y)
    model.save(tmp_path / "model.tan")
    again = load(tmp_path / "model.tan")
    np.testing.assert_array_equal(again.predict_proba(holed(X)), model.predict_proba(holed(X)))
    assert not again.tables_.is_normalized
    assert again.structure_probabilities_ == model.structure_probabilities_
    assert again.loss_.get_params() == model.loss_.get_params()
    assert set(again.structure_probabilities_[0]) >= {(), (1,)}


def test_rows_one_at_a_time_are_predicted_the_same():
    X, y = parity()
    model = KTreeClassifier(**PLAIN).fit(X, y)
    predictor = model.row_predictor()
    rows = [*holed(X[:20]).tolist()]
    assert [predictor.predict(row) for row in rows] == model.predict(rows).tolist()


def test_validation_rows_stop_early():
    X, y = parity(noise=0.3)
    training = GradientTraining(batch_size=50, validation_fraction=0.3, patience=3)
    model = KTreeClassifier(**{**PLAIN, "n_epochs": 200, "training": training}).fit(X, y)
    assert model.n_epochs_ < 200
    errors = [report.validation_error for report in model.history_]
    assert min(errors[-3:]) >= min(errors[:-3])
    assert model.n_iter_ == len(errors)


def test_calibration_alone_takes_held_out_rows():
    X, y = parity(noise=0.2)
    plain, calibrated = (
        KTreeClassifier(**{**PLAIN, "n_epochs": 60, "calibrate": calibrate}).fit(X, y) for calibrate in (False, True)
    )
    np.testing.assert_array_equal(plain.tables_.cells, calibrated.tables_.cells)
    fresh, true = parity(2000, seed=9, noise=0.2)
    losses = [log_loss(true, model.predict_proba(fresh)) for model in (plain, calibrated)]
    assert losses[1] < losses[0]
    assert not hasattr(calibrated, "cv_results_")


def test_an_interrupted_training_goes_on(tmp_path):
    X, y = parity(noise=0.1)

    def interrupt(report):
        if report.epoch == 4:
            raise KeyboardInterrupt

    model = KTreeClassifier(**PLAIN).set_params(training__checkpoint=str(tmp_path / "training"))
    with pytest.raises(KeyboardInterrupt):
        clone(model).set_params(training__callback=interrupt).fit(X, y)
    seen = []
    found = model.set_params(training__callback=lambda report: seen.append(report.epoch)).fit(X, y)
    expected = KTreeClassifier(**PLAIN).fit(X, y)
    assert seen[-6:] == [5, 6, 7, 8, 9, 10]
    assert len(seen) < 10
    np.testing.assert_array_equal(found.tables_.cells, expected.tables_.cells)
    assert found.history_ == expected.history_


def test_another_prior_moves_probabilities():
    X, y = parity(noise=0.2)
    model = KTreeClassifier(**PLAIN).fit(X, y)
    rare = model.with_class_prior([0.99, 0.01])
    assert rare.predict_proba(X)[:, 1].mean() < model.predict_proba(X)[:, 1].mean()
    assert not rare.tables_.is_normalized


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": Hybrid()}, "loss must be ConditionalNLL, Margin or HingeMargin, because .* got Hybrid"),
        ({"candidates": "unconstrained"}, "may form. Use candidates='order-free'"),
        ({"training__checkpoint": "file", "loss": None}, "selection on held-out rows needs several"),
        ({"training__checkpoint": "file", "random_state": None}, "needs an integer random_state"),
        ({"training__patience": 3}, "Set validation_fraction, for example"),
        ({"training__temperature": (0, 1)}, "two positive numbers"),
        ({"training__init": "uniform"}, "k-trees support only init='maximum-likelihood', got 'uniform'"),
        ({"training__dtype": "float64"}, "k-trees support only dtype='float32', got 'float64'"),
        ({"candidates__image_shape": (2, 3)}, "candidates of kind 'information' do not use image_shape"),
        ({"candidates": CandidateSets(np.array([[1, 2]] + [[-1, -1]] * 5), np.arange(7))}, "single parent, or a pair"),
    ],
)
def test_what_cannot_be_learnt_is_refused(changes, message):
    X, y = parity()
    with pytest.raises(ValueError, match=message):
        KTreeClassifier(**PLAIN).set_params(**changes).fit(X, y)


def test_trees_refuse_pairs_that_may_form_a_cycle():
    X, y = parity()
    sets = CandidateSets.from_lists([[1, 2], [0, 2], [0, 1], [], [], []], n_parents=2)
    with pytest.raises(ValueError, match="Use KTreeClassifier"):
        TANClassifier(candidates=sets, random_state=0).fit(X, y)


def test_verbose_says_what_was_chosen(capsys):
    X, y = parity()
    KTreeClassifier(n_epochs=10, verbose=1, random_state=0).fit(X, y)
    said = capsys.readouterr().out
    assert "chosen on held-out rows: " in said
    assert "epoch 10/10: loss" in said


def test_sums_over_all_rows_that_would_take_too_much_are_refused_with_a_remedy():
    """A grid of 30 x 30 features and rounded scores, which only a sum over all values of all features normalises."""
    number = np.arange(900).reshape(30, 30)
    above, before = np.full((2, 30, 30), -1)
    above[1:], before[:, 1:] = number[:-1], number[:, :-1]
    X = np.random.default_rng(0).integers(0, 2, (40, 900))
    grid = Structure(np.stack([above.ravel(), before.ravel()], axis=1))
    model = BayesNetClassifier(structure=grid).fit(X, np.arange(40) % 2).with_bits((3, 1))
    assert np.isfinite(model.predict_joint_log_proba(X)).all()
    with pytest.raises(ValueError, match=r"all 900 features .* Rank rows by predict_joint_log_proba"):
        model.score_samples(X)


@pytest.mark.parametrize("bits", [None, (3, 1)])
def test_probabilities_of_all_rows_sum_to_one(bits):
    X, y = parity(300, noise=0.1)
    model = KTreeClassifier(**PLAIN).fit(X, y)
    model = model if bits is None else model.with_bits(bits)
    every = np.array([*itertools.product([0, 1], repeat=6)])
    p = np.exp(model.score_samples(every))
    np.testing.assert_allclose(p.sum(), 1)
    parts = np.exp(model.score_samples(np.where(np.arange(6) < 2, every, np.nan)[::16].astype(float)))
    np.testing.assert_allclose(parts, p.reshape(4, 16).sum(axis=1))


def test_k_trees_are_read_as_networks_are():
    X, y = parity(noise=0.1)
    model = KTreeClassifier(**{**PLAIN, "n_epochs": 20, "calibrate": True}).fit(X, y)
    odds, log_p = model.explain(X, against=0), model.predict_log_proba(X)
    assert odds.shape == (len(X), 7, 2)
    np.testing.assert_allclose(odds.sum(axis=1), log_p - log_p[:, :1], atol=1e-9)
    np.testing.assert_allclose(model.explain(X).sum(axis=1), model.predict_joint_log_proba(X), atol=1e-9)
    frame = model.explain_frame(X[:2], against=0)
    assert frame["feature"].tolist() == [*(f"x{i}" for i in range(6)), "(classes)"] * 2
    parents = [", ".join(f"x{j}" for j in row if j >= 0) for row in model.structure_.parents.tolist()]
    assert frame["parents"].tolist() == [*parents, ""] * 2
    assert any("," in names for names in parents)
    edges = {(f"x{j}", f"x{i}") for i, row in enumerate(model.structure_.parents) for j in row if j >= 0}
    assert set(model.to_networkx().edges) == edges | {("class", f"x{i}") for i in range(6)}
    assert json.loads(json.dumps(model.describe()))["normalized"] is False
    with pytest.raises(ValueError, match=r"row 0 lacks a feature.*k-trees.*\) can explain only complete rows"):
        model.explain(holed(X))
    assert not hasattr(model, "sample")  # nothing is drawn of scores


@pytest.mark.parametrize("n_varied", [0, 1, 2, 3])
@pytest.mark.parametrize("candidates", ["information", "order-free", "subset"])
def test_trees_without_pairs_to_choose_are_saved(tmp_path, candidates, n_varied):
    X, y = parity(200)
    X[:, n_varied:] = 1
    model = KTreeClassifier(**{**PLAIN, "candidates": candidates}).fit(X, y)
    assert all(type(key) is tuple for choices in model.structure_probabilities_ for key in choices)
    model.save(tmp_path / "m.tan")
    again = load(tmp_path / "m.tan")
    assert again.structure_probabilities_ == model.structure_probabilities_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_rows_that_miss_whatever_they_like_are_predicted(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (400, 12))
    X[:, 6:] = np.where(rng.random((400, 6)) < 0.3, X[:, :6], (X[:, :6] + X[:, [1, 2, 3, 4, 5, 0]]) % 3)
    y = (X[:, 0] + X[:, 1]) % 3
    model = KTreeClassifier(**{**PLAIN, "n_epochs": 20}).fit(X, y)
    gappy = holed(X, 0.6)
    gappy[0] = np.nan
    exact = model.predict_proba(gappy)
    for capacity in (3, 50, 500):  # in slices
        monkeypatch.setattr("tanlearn.models.elimination._CAPACITY", capacity)
        np.testing.assert_allclose(model.predict_proba(gappy), exact, rtol=1e-9)
        for limit in ("100", "300"):
            monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", limit)
            with pytest.warns(
                InexactMarginalizationWarning, match=r"the scores of rows? 0.* are approximate"
            ) as caught:
                found = model.predict_proba(gappy)
            assert caught[0].filename == __file__
            assert np.isfinite(found).all()
            assert (found.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.8
        monkeypatch.delenv("TANLEARN_MAX_ROW_OPERATIONS")
    monkeypatch.setenv("TANLEARN_MAX_ROW_OPERATIONS", "5")
    with pytest.raises(ValueError, match=r"all 12 features .* Rank rows by predict_joint_log_proba"):
        model.score_samples(X[:2])

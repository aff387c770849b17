"""Estimators as a user meets them."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tanlearn import (
    BayesNetClassifier,
    Calibration,
    Candidates,
    CandidateSets,
    ConditionalNLL,
    ConjugateGradient,
    EncodedData,
    GradientTraining,
    HierarchicalSmoothing,
    Hybrid,
    MaximumLikelihood,
    NaiveBayesClassifier,
    Structure,
    TableEncoder,
    TANClassifier,
)
from tanlearn.baselines import ChowLiu, GreedySearch
from tanlearn.estimators import gradient_tan

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
QUICK = {"n_epochs": 10, "training": GradientTraining(batch_size=30), "random_state": 0}


def mixed_columns(n=60):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, "yes", "no")
    return {
        "colour": np.where(y == "yes", "red", rng.choice(["red", "blue"], n)),
        "size": rng.normal(size=n) + 3 * (y == "yes"),
        "count": rng.integers(0, 4, n),
        "flag": rng.random(n) < 0.5,
    }, y


@pytest.mark.parametrize(
    "estimator",
    [
        NaiveBayesClassifier(),
        NaiveBayesClassifier(parameters=ConjugateGradient(loss=ConditionalNLL(), max_iter=10)),
        BayesNetClassifier(structure=ChowLiu()),
        BayesNetClassifier(structure=Structure([-1, 0, -1, 2])),
        TANClassifier(candidates="order-free", **QUICK),
    ],
    ids=["nb", "nb-cl", "chow-liu", "given", "gradient"],
)
def test_pandas_polars_and_arrays_give_the_same_model(estimator):
    columns, y = mixed_columns()
    frames = [pd.DataFrame(columns), pl.DataFrame(columns)]
    p = [clone(estimator).fit(frame, y).predict_proba(frame) for frame in frames]
    np.testing.assert_array_equal(p[0], p[1])
    objects = np.stack([np.asarray(column, dtype=object) for column in columns.values()], axis=1)
    np.testing.assert_array_equal(clone(estimator).fit(objects, y).predict_proba(objects), p[0])
    model = clone(estimator).fit(frames[0], y)
    assert model.feature_names_in_.tolist() == list(columns)
    assert model.score(frames[0], y) > 0.8
    assert set(model.predict(frames[0])) <= {"yes", "no"}


def test_pickled_model_predicts_the_same():
    model = TANClassifier(**QUICK).fit(X_IRIS, Y_IRIS)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X_IRIS), model.predict_proba(X_IRIS))


def test_missing_and_unseen_values_at_prediction_are_summed_out():
    columns, y = mixed_columns()
    model = BayesNetClassifier(structure=ChowLiu()).fit(pd.DataFrame(columns), y)
    row = pd.DataFrame({"colour": [None, "green"], "size": [1.0, 1.0], "count": [2, 2], "flag": [True, True]})
    p = model.predict_proba(row)
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    nothing = pd.DataFrame({name: [None] for name in columns}, dtype=object)
    np.testing.assert_allclose(model.predict_log_proba(nothing)[0], model.tables_.log_prior, rtol=1e-12)


def test_unseen_values_are_an_error_on_request():
    columns, y = mixed_columns()
    strict = NaiveBayesClassifier(encoder=TableEncoder(handle_unknown="error")).fit(pd.DataFrame(columns), y)
    frame = pd.DataFrame(columns).iloc[:1].assign(colour="green")
    with pytest.raises(ValueError, match=r"colour.*green"):
        strict.predict(frame)


def test_training_on_missing_values_counts_what_is_there():
    X, y = X_IRIS.copy(), Y_IRIS
    X[::7, 2] = np.nan
    assert NaiveBayesClassifier().fit(X, y).score(X, y) > 0.9
    assert BayesNetClassifier(structure=ChowLiu()).fit(X, y).score(X, y) > 0.9
    assert TANClassifier(**QUICK).fit(X, y).score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"A pseudo-TAN.* learns from complete rows only"):
        TANClassifier(**{**QUICK, "candidates": "unconstrained"}).fit(X, y)


def test_weight_zero_is_an_absent_row_and_weight_two_the_row_twice():
    weight = np.random.default_rng(0).integers(0, 3, len(Y_IRIS))
    repeated = np.repeat(np.arange(len(Y_IRIS)), weight)
    for estimator in (NaiveBayesClassifier(), BayesNetClassifier(structure=ChowLiu(penalty="bic"))):
        weighted = clone(estimator).fit(X_IRIS, Y_IRIS, sample_weight=weight)
        plain = clone(estimator).fit(X_IRIS[repeated], Y_IRIS[repeated])
        np.testing.assert_array_equal(weighted.tables_.cells, plain.tables_.cells)


def test_grid_search_over_nested_parameters():
    grid = {"alpha": [0.1, 1.0]}
    search = GridSearchCV(
        NaiveBayesClassifier(parameters=MaximumLikelihood()), {f"parameters__{k}": v for k, v in grid.items()}, cv=3
    ).fit(X_IRIS, Y_IRIS)
    assert search.best_score_ > 0.9
    search = GridSearchCV(TANClassifier(loss=Hybrid(), **QUICK), {"loss__trade_off": [1, 10]}, cv=2)
    assert search.fit(X_IRIS, Y_IRIS).best_params_["loss__trade_off"] in (1, 10)


def test_pipeline():
    pipeline = make_pipeline(FunctionTransformer(np.round), NaiveBayesClassifier())
    assert pipeline.fit(X_IRIS, Y_IRIS).score(X_IRIS, Y_IRIS) > 0.9


def test_threads_change_nothing():
    X, y = load_digits(return_X_y=True)
    for estimator in (BayesNetClassifier(structure=ChowLiu()), TANClassifier(n_epochs=1, random_state=0)):
        one, two = (clone(estimator).set_params(n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2))
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("random_state", [3, np.random.RandomState(3), np.random.default_rng(3)])
def test_random_state_takes_what_scikit_learn_users_pass(random_state):
    model = TANClassifier(n_epochs=1, random_state=random_state).fit(X_IRIS, Y_IRIS)
    assert model.structure_.is_acyclic


def test_same_seed_same_model():
    a, b = (TANClassifier(**QUICK).fit(X_IRIS, Y_IRIS) for _ in range(2))
    np.testing.assert_array_equal(a.tables_.cells, b.tables_.cells)
    assert a.structure_ == b.structure_


def test_learnt_structure_comes_out_as_a_graph_with_its_distribution():
    model = TANClassifier(candidates="order-free", **QUICK).fit(X_IRIS, Y_IRIS)
    names = load_iris().feature_names
    assert set(model.structure_.to_networkx(names).nodes) == {"C", *names}
    assert all(sum(shares.values()) == pytest.approx(1) for shares in model.structure_probabilities_)
    assert model.tables_.n_parameters == model.n_parameters_
    assert len(model.history_) == model.n_iter_ == 10


def test_validation_fraction_keeps_the_best_epoch():
    model = TANClassifier(
        training=GradientTraining(validation_fraction=0.3, patience=3), n_epochs=200, random_state=0
    ).fit(X_IRIS, Y_IRIS)
    errors = [report.validation_error for report in model.history_]
    assert len(errors) == model.n_iter_ < 200
    assert errors.index(min(errors)) == len(errors) - 4


def test_progress_is_printed(capsys):
    TANClassifier(verbose=1, **QUICK).fit(X_IRIS, Y_IRIS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert lines[-2].startswith("epoch 10/10: loss ")
    assert lines[-1].startswith("chosen on held-out rows: ")
    TANClassifier(**QUICK).fit(X_IRIS, Y_IRIS)
    assert capsys.readouterr().out == ""


def test_callback_of_the_users_own():
    seen = []
    model = TANClassifier(**QUICK).set_params(training__callback=lambda report: seen.append(report) or len(seen) == 3)
    model.fit(X_IRIS, Y_IRIS)
    assert [report.epoch for report in seen] == [1, 2, 3]
    assert model.n_iter_ == 3


def test_explicit_candidates():
    model = TANClassifier(candidates=[[], [0], [], [2]], **QUICK)
    model.set_params(training__structure_learning_rate=0.1).fit(X_IRIS, Y_IRIS)
    assert [set(shares) for shares in model.structure_probabilities_] == [{-1}, {-1, 0}, {-1}, {-1, 2}]


def test_heuristic_candidates_of_images():
    X, y = load_digits(return_X_y=True)
    model = TANClassifier(
        candidates=Candidates("heuristic", n_candidates=2, image_shape=(8, 8)), n_epochs=2, random_state=0
    )
    parent = model.fit(X, y).structure_.parent
    far = [abs(i // 8 - j // 8) + abs(i % 8 - j % 8) for i, j in enumerate(parent) if j >= 0]
    assert max(far, default=0) <= 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"device": "tpu"}, "device must be 'cpu', 'cuda', or .* got 'tpu'"),
        ({"training__patience": 3}, "Set validation_fraction, for example"),
        ({"training__temperature": (10.0, 0.0)}, "two positive numbers"),
        ({"training__temperature": ("a", "b")}, "two positive numbers"),
        ({"candidates__image_shape": (2, 2)}, "candidates of kind 'subset' do not use image_shape"),
        ({"candidates": "nearest"}, "'candidates' parameter of TANClassifier"),
        ({"n_epochs": 0}, "'n_epochs' parameter"),
        ({"training__batch_size": 0}, "'batch_size' parameter of GradientTraining"),
        ({"training__validation_fraction": 0.001}, "a held-out fraction of 0.001 of 150 rows is less than one row"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        TANClassifier().set_params(**parameters).fit(X_IRIS, Y_IRIS)


def test_structure_of_another_table_is_refused():
    with pytest.raises(ValueError, match="structure has 2 features, but X has 4 columns"):
        BayesNetClassifier(structure=Structure([-1, 0])).fit(X_IRIS, Y_IRIS)


def test_learners_without_their_method_are_refused():
    with pytest.raises(ValueError, match="'structure' parameter of BayesNetClassifier"):
        BayesNetClassifier(structure=MaximumLikelihood()).fit(X_IRIS, Y_IRIS)
    with pytest.raises(TypeError, match="got the string 'hinge'"):
        TANClassifier(loss="hinge").fit(X_IRIS, Y_IRIS)


class Alone:
    """A learner of naive Bayes structures and parameters with no other methods than the required ones."""

    def learn(self, data, rng):
        return Structure.naive_bayes(data.n_features)

    def fit(self, structure, data, rng):
        self.structure = structure
        return MaximumLikelihood().fit(structure, data, rng)


def test_learners_need_no_more_than_their_method():
    expected = NaiveBayesClassifier().fit(X_IRIS, Y_IRIS).predict_proba(X_IRIS)
    learner = Alone()
    for model in (BayesNetClassifier(structure=learner, parameters=learner), NaiveBayesClassifier(parameters=learner)):
        np.testing.assert_array_equal(model.fit(X_IRIS, Y_IRIS).predict_proba(X_IRIS), expected)
        assert model.parameters_.structure == model.structure_
    assert not vars(learner)  # copies were fitted


@pytest.mark.parametrize("kind", [NaiveBayesClassifier, BayesNetClassifier])
def test_probabilities_are_calibrated_as_by_the_learner(kind):
    model = kind(parameters=ConjugateGradient(loss=ConditionalNLL(), max_iter=3)).fit(X_IRIS, Y_IRIS)
    found = model.parameters_.calibration_
    assert model.calibration_ == found != Calibration()
    np.testing.assert_allclose(
        model.predict_log_proba(X_IRIS), found.log_posterior(model.predict_joint_log_proba(X_IRIS))
    )


@pytest.mark.parametrize(
    "model",
    [
        BayesNetClassifier(structure=GreedySearch(), device="cuda"),
        BayesNetClassifier(parameters=HierarchicalSmoothing(), device="cuda"),
        NaiveBayesClassifier(parameters=HierarchicalSmoothing(), device="cuda"),
    ],
    ids=repr,
)
def test_learners_that_do_not_work_on_the_device_are_refused_before_they_start(monkeypatch, model):
    for module in ("classifier", "counting_classifier"):  # as if the device were there
        monkeypatch.setattr(f"tanlearn.estimators.{module}.check_device", lambda device: None)
    learner = model.parameters if getattr(model, "structure", None) is None else model.structure
    rule = rf"{type(learner).__name__}\(\) supports only device='cpu', got device='cuda'"
    with pytest.raises(ValueError, match=rule):
        model.fit(X_IRIS, Y_IRIS)
    if learner is model.parameters:
        with pytest.raises(ValueError, match=rule):
            model.fit_batches([(X_IRIS, Y_IRIS)])


def test_classes_and_names_of_learners_are_refused_with_a_remedy():
    for name, learner in (("structure", ChowLiu), ("parameters", MaximumLikelihood)):
        remedy = rf"got the class {learner.__name__}\. Pass an instance instead: {learner.__name__}\(\.\.\.\)\.$"
        with pytest.raises(TypeError, match=remedy):
            BayesNetClassifier(**{name: learner}).fit(X_IRIS, Y_IRIS)
    with pytest.raises(TypeError, match="must be an object, got the class ChowLiu"):
        BayesNetClassifier(structure=ChowLiu).fit_batches([(X_IRIS, Y_IRIS)])
    with pytest.raises(
        ValueError, match=r"Got 'chow-liu' instead.* learner of tanlearn\.baselines, such as ChowLiu\(\)"
    ):
        BayesNetClassifier(structure="chow-liu").fit(X_IRIS, Y_IRIS)
    with pytest.raises(ValueError, match=r"Got 'ml' instead.* learner of tanlearn, such as MaximumLikelihood\(\)"):
        NaiveBayesClassifier(parameters="ml").fit(X_IRIS, Y_IRIS)


def test_repr_shows_what_was_set():
    assert repr(BayesNetClassifier(structure=ChowLiu(penalty="bic"))) == (
        "BayesNetClassifier(structure=ChowLiu(penalty='bic'))"
    )


@pytest.mark.filterwarnings("ignore:discretization left")
def test_a_refit_that_fails_leaves_no_torn_model():
    """The new encoder must never meet the old tables."""
    model = TANClassifier(**QUICK).fit(X_IRIS, Y_IRIS)

    def interrupt(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(training__callback=interrupt).fit(np.arange(400).reshape(200, 2) % 64, np.arange(200) % 9)
    with pytest.raises(NotFittedError):
        model.predict(X_IRIS[:, :2])


def test_categories_and_cuts_are_not_learnt_from_held_out_rows():
    """A category in one row only is either known or held out, by the draw."""
    X = np.arange(60).astype(str)[:, np.newaxis]
    model = TANClassifier(**QUICK).set_params(training__validation_fraction=0.5).fit(X, np.arange(60) % 2)
    assert len(model.encoder_.categories_[0]) == 30


def test_candidate_sets_of_the_users_own():
    sets = CandidateSets.from_lists([[1], [0], [], []], allow_cycles=True)
    model = TANClassifier(candidates=sets, **QUICK).fit(X_IRIS, Y_IRIS)
    assert model.candidates_ is sets


def test_a_fit_leaves_the_users_loss_alone():
    loss = Hybrid(trade_off=10)
    before = pickle.dumps(loss)
    TANClassifier(loss=loss, **QUICK).fit(X_IRIS, Y_IRIS)
    assert pickle.dumps(loss) == before


def test_gradient_fits_in_threads_share_a_loss_and_agree():
    loss = Hybrid(trade_off=10)
    models = [TANClassifier(candidates="order-free", loss=loss, **{**QUICK, "random_state": k % 2}) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda model: model.fit(X_IRIS, Y_IRIS).tables_.cells, models))
    for k in range(8):
        np.testing.assert_array_equal(tables[k], tables[k % 2])


def test_a_missing_value_is_named_by_column_and_row_of_the_users_table():
    """Rows of weight 0 are dropped and others held out, yet the numbers are those of the table."""
    columns, y = mixed_columns()
    frame = pd.DataFrame(columns)
    frame.loc[50:, "size"] = np.nan
    weight = np.ones(60)
    weight[:30] = 0
    for options in ({}, {"training__validation_fraction": 0.1}):
        model = TANClassifier(candidates="unconstrained", **QUICK).set_params(**options)
        with pytest.raises(ValueError, match=r"the first of X column 'size' in row 5\d\."):
            model.fit(frame, y, sample_weight=weight)


def test_learning_from_codes_forgets_the_encoder_of_an_earlier_fit():
    model = TANClassifier(**QUICK).fit(X_IRIS, Y_IRIS)
    data = EncodedData.from_codes([[0, 1], [1, 0], [1, 1]], [0, 1, 1])
    assert model.fit_encoded(data).tables_.layout.n_classes == 2
    with pytest.raises(NotFittedError):
        model.predict(X_IRIS)


def test_own_validation_rows_allow_patience():
    y = np.arange(200) % 2
    data = EncodedData.from_codes(np.stack([y, 1 - y], axis=1), y)
    model = TANClassifier(training=GradientTraining(patience=2, batch_size=50), n_epochs=50, random_state=0)
    assert len(model.fit_encoded(data.take(np.arange(150)), data.take(np.arange(150, 200))).history_) < 50
    weight = np.where(np.arange(200) < 180, 0, 1)
    weighted = EncodedData.from_codes(np.stack([y, 1 - y], axis=1), y, sample_weight=weight)
    model.set_params(training__validation_fraction=0.2).fit_encoded(weighted)
    assert model.history_[-1].validation_error is not None


def test_a_rare_category_may_be_held_out():
    X = np.where(np.arange(60) == 7, "rare", "common")[:, np.newaxis]
    strict = TANClassifier(encoder=TableEncoder(handle_unknown="error"), **QUICK)
    strict.set_params(training__validation_fraction=0.5)
    for seed in range(4):
        strict.set_params(random_state=seed).fit(X, np.arange(60) % 2)


def asked_of_trainings(monkeypatch, model, data, *, run):
    """Return rows, loss, settings and options of the trainings of a fit, which are run or stop it."""
    calls, train_in_bits = [], gradient_tan.train_in_bits

    def train(bits, data, candidates, loss, settings, rng, **options):
        calls.append((data.n_samples, loss, settings, options))
        if not run:
            raise InterruptedError
        return train_in_bits(bits, data, candidates, loss, settings, rng, **options)

    monkeypatch.setattr(gradient_tan, "train_in_bits", train)
    if run:
        model.fit_encoded(data)
    else:
        with pytest.raises(InterruptedError):
            model.fit_encoded(data)
    return calls


def binary(n, missing=False):
    """Return rows of three binary features and two classes."""
    codes = np.random.default_rng(0).integers(0, 2, (n, 3))
    codes[0, 0] = -1 if missing else 0
    return EncodedData.from_codes(codes, np.arange(n) % 2, n_states=[2] * 3)


def test_settings_reach_every_training_of_gradient_tan(monkeypatch):
    given = {"learning_rate": 0.02, "structure_learning_rate": 0.03, "batch_size": 40}
    given |= {"init": "uniform", "dtype": "float64", "temperature": (0.9, 0.2)}
    reports, loss = [], Hybrid(trade_off=3)
    training, others = GradientTraining(**given, callback=reports.append), {"n_epochs": 3, "size_weight": 0.01}
    model = TANClassifier(training=training, **others, loss=loss, random_state=0)
    given |= others
    calls = asked_of_trainings(monkeypatch, model, binary(90), run=True)
    for _, own, settings, _ in calls:
        assert {name: getattr(settings, name) for name in given} == given
        assert own.get_params() == loss.get_params()
    assert calls[0][0] == 90
    assert all(n < 90 for n, *_ in calls[1:])
    assert len(calls) > 2  # for the calibration, without each fold
    assert [report.epoch for report in reports] == [1, 2, 3]


@pytest.mark.parametrize(
    ("n", "parameters", "missing", "expected"),
    [
        (50, {}, False, (2000, 0.1)),
        (200, {}, False, (1000, 0.1)),
        (1999, {}, False, (106, 0.1)),
        (2000, {}, False, (100, 0.01)),
        (200, {"training__batch_size": 50}, False, (500, 0.1)),
        (200, {}, True, (100, 0.01)),
        (200, {"loss": Hybrid()}, False, (100, 0.01)),
        (200, {"bits": (3, 1)}, False, (100, 0.01)),
        (200, {"n_epochs": 300}, False, (300, 0.01)),
        (200, {"training__learning_rate": 0.5}, False, (1000, 0.5)),
    ],
)
def test_small_tables_without_gaps_have_two_thousand_steps_by_default(monkeypatch, n, parameters, missing, expected):
    model = TANClassifier(random_state=0).set_params(**parameters)
    ((*_, settings, _),) = asked_of_trainings(monkeypatch, model, binary(n, missing), run=False)
    assert (settings.n_epochs, settings.learning_rate) == expected
    assert settings.init == "maximum-likelihood"  # by default, unlike that of trainings


def test_a_warm_start_needs_the_same_names_of_columns():
    X = pd.DataFrame(X_IRIS[::3, :2], columns=["a", "b"])
    y = Y_IRIS[::3]
    model = TANClassifier(**QUICK, loss=Hybrid(), calibrate=False, warm_start=True).fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="warm_start requires the same candidates"):
        model.fit(X.rename(columns={"a": "c"}), y)

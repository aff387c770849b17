"""Cross-tuning against an exhaustive search, and its rules."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from tanlearn import (
    LBFGS,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    EncodedData,
    ExtendedBaumWelch,
    Margin,
    MaximumLikelihood,
    StochasticGradient,
    Structure,
)
from tanlearn.baselines import ChowLiu
from tanlearn.encoding.splits import draw_folds

CHAIN = Structure([-1, 0, 1])
GRID = {"loss__scale": [0.05, 0.5], "loss__kappa": [0.1, 0.5]}


def noisy_data(n=90, weight=None, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = (y[:, np.newaxis] + rng.integers(0, 3, (n, 3)) * (rng.random((n, 3)) < 0.6)) % 3
    return EncodedData.from_codes(X, y, n_states=[3, 3, 3], n_classes=3, sample_weight=weight)


def rate(tables, data):
    right = tables.layout.log_joint(data.codes, tables.cells).argmax(axis=1) == data.y
    return np.average(right, weights=data.weights)


@pytest.mark.parametrize("method", [ConjugateGradient, LBFGS, ExtendedBaumWelch])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_choice_is_that_of_an_exhaustive_search(method, weighted):
    data = noisy_data(weight=np.random.default_rng(5).integers(1, 4, 90) if weighted else None)
    tuned = CrossTuned(learner=method(loss=Margin(), max_iter=5), param_grid=GRID, cv=3, patience=None)
    tables = tuned.fit(CHAIN, data, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    fold = draw_folds(data.y, 3, rng)
    share = [data.weights[fold == k].sum() / data.weights.sum() for k in range(3)]
    best = (-1.0,)
    for i, setting in enumerate(tuned.cv_results_["params"]):
        for n_iter in range(6):
            mean = 0.0
            for k in range(3):
                learner = method(loss=Margin()).set_params(**setting, max_iter=max(n_iter, 1))
                train = data.take(fold != k)
                fitted = learner.fit(CHAIN, train, rng) if n_iter else MaximumLikelihood().fit(CHAIN, train, rng)
                mean += share[k] * rate(fitted, data.take(fold == k))
            assert tuned.score_path_[i, n_iter] == pytest.approx(mean, abs=1e-12)
            best = max(best, (round(mean, 9), -n_iter, -i))
    assert (tuned.best_n_iter_, tuned.best_params_) == (-best[1], tuned.cv_results_["params"][-best[2]])
    assert len({tuple(setting.items()) for setting in tuned.cv_results_["params"]}) == 4
    if tuned.best_n_iter_:
        learner = method(loss=Margin(), max_iter=tuned.best_n_iter_).set_params(**tuned.best_params_)
        expected = learner.fit(CHAIN, data, rng)
        assert (tuned.n_iter_, tuned.converged_) == (learner.n_iter_, learner.converged_)
        assert tuned.history_ == learner.history_
    else:
        expected = MaximumLikelihood().fit(CHAIN, data, rng)
    np.testing.assert_array_equal(tables.cells, expected.cells)


def test_nothing_is_gained_so_the_start_stays():
    y = np.arange(40) % 2
    data = EncodedData.from_codes(np.stack([y, 1 - y], axis=1), y)
    tuned = CrossTuned(param_grid=GRID, cv=4)
    tables = tuned.fit(Structure([-1, 0]), data, np.random.default_rng(0))
    assert tuned.best_n_iter_ == 0
    assert (tuned.n_iter_, tuned.converged_, tuned.history_) == (0, False, [])
    assert tuned.best_params_ == {"loss__kappa": 0.1, "loss__scale": 0.05}
    assert tuned.score_path_[0, 0] == 1
    np.testing.assert_array_equal(
        tables.cells, MaximumLikelihood().fit(Structure([-1, 0]), data, np.random.default_rng(0)).cells
    )


def test_patience_ends_runs_and_the_last_rate_stands_for_the_rest():
    data = noisy_data()
    grid = {"loss__scale": [0.5]}
    paths, ran = {}, {}
    for patience in (3, None):
        tuned = CrossTuned(learner=LBFGS(max_iter=40), param_grid=grid, cv=3, patience=patience)
        tuned.fit(CHAIN, data, np.random.default_rng(0))
        paths[patience] = tuned.score_path_
        ran[patience] = np.array([tuned.cv_results_[f"split{k}_n_iter"][0] for k in range(3)])
    short, full = paths[3], paths[None]
    assert (ran[3] < ran[None]).all()
    first = ran[3].min()
    assert first >= 3
    np.testing.assert_array_equal(short[0, : first + 1], full[0, : first + 1])
    assert short.shape == (1, 1 + ran[3].max())
    fold = draw_folds(data.y, 3, np.random.default_rng(0))
    last = 0.0
    for k, n_iter in enumerate(ran[3]):
        fitted = LBFGS(loss=Margin(scale=0.5), max_iter=n_iter).fit(
            CHAIN, data.take(fold != k), np.random.default_rng(0)
        )
        last += rate(fitted, data.take(fold == k)) * (fold == k).mean()
    assert short[0, -1] == pytest.approx(last)


@pytest.mark.parametrize("patience", [1, 3])
def test_a_fold_ends_after_so_many_iterations_without_a_better_rate(capsys, patience):
    data = noisy_data(weight=np.random.default_rng(5).integers(1, 4, 90))
    learner = LBFGS(loss=Margin(scale=0.5), max_iter=40)
    tuned = CrossTuned(learner=learner, param_grid={}, cv=3, patience=patience, calibrate=False, verbose=1)
    tuned.fit(CHAIN, data, np.random.default_rng(0))
    fold, lines = draw_folds(data.y, 3, np.random.default_rng(0)), capsys.readouterr().out.splitlines()
    for k in range(3):
        train, held_out = data.take(fold != k), data.take(fold == k)
        path = [learner.start(CHAIN, train, np.random.default_rng(0))]
        learner.improve(path[0], train, path.append)
        rates = [rate(tables, held_out) for tables in path]
        n_iter = next(n for n in range(41) if n - np.argmax(rates[: n + 1]) >= patience)
        assert tuned.cv_results_[f"split{k}_n_iter"].tolist() == [n_iter]
        best = int(np.argmax(rates[: n_iter + 1]))
        assert lines[k] == f"setting 0, fold {k}: rate {rates[best]:.4f} after {best} of {n_iter} iterations"


def test_the_table_of_results_is_scikit_learns():
    data = noisy_data(weight=np.random.default_rng(5).integers(1, 4, 90))
    grid = [{"loss__scale": [0.05, 0.5]}, {"loss__kappa": [0.1, 0.5], "alpha": [0.5]}]
    tuned = CrossTuned(learner=ConjugateGradient(max_iter=6), param_grid=grid, cv=3)
    tuned.fit(CHAIN, data, np.random.default_rng(0))
    table = pd.DataFrame(tuned.cv_results_)
    assert table["params"].tolist() == tuned.cv_results_["params"]
    given = table.filter(like="param_").notna()
    assert given.columns.tolist() == ["param_alpha", "param_loss__kappa", "param_loss__scale"]
    assert given.to_numpy().tolist() == [[False, False, True]] * 2 + [[True, True, False]] * 2
    fold = draw_folds(data.y, 3, np.random.default_rng(0))
    for i, row in table.iterrows():
        assert all(row[f"param_{name}"] == value for name, value in row["params"].items())
        learner = ConjugateGradient(loss=Margin(), max_iter=max(1, row["best_n_iter"])).set_params(**row["params"])
        for k in range(3):
            train = data.take(fold != k)
            start = learner.start(CHAIN, train, np.random.default_rng(0))
            tables = learner.improve(start, train) if row["best_n_iter"] else start
            assert row[f"split{k}_test_score"] == pytest.approx(rate(tables, data.take(fold == k)))
            assert row["best_n_iter"] <= row[[f"split{j}_n_iter" for j in range(3)]].max() <= 6
        scores = row[[f"split{k}_test_score" for k in range(3)]].astype(float)
        share = [data.weights[fold == k].sum() for k in range(3)]
        assert row["mean_test_score"] == pytest.approx(np.average(scores, weights=share))
        assert row["std_test_score"] == pytest.approx(scores.std(ddof=0))
        assert row["rank_test_score"] == 1 + (table["mean_test_score"] > row["mean_test_score"]).sum()
        assert row["mean_test_score"] == tuned.score_path_[i].max()
    best = table.iloc[tuned.best_index_]
    assert best["rank_test_score"] == 1
    assert (best["params"], best["best_n_iter"]) == (tuned.best_params_, tuned.best_n_iter_)
    assert best["mean_test_score"] == tuned.best_score_


def test_results_do_not_depend_on_threads():
    data = noisy_data()
    models = []
    for n_jobs in (1, 4):
        tuned = CrossTuned(learner=ConjugateGradient(max_iter=15), n_jobs=n_jobs, cv=4)
        models.append((tuned.fit(CHAIN, data, np.random.default_rng(7)), tuned))
    np.testing.assert_array_equal(models[0][0].cells, models[1][0].cells)
    np.testing.assert_array_equal(models[0][1].score_path_, models[1][1].score_path_)
    assert models[0][1].best_params_ == models[1][1].best_params_


class WarningLoss:
    """Warns as SciPy's line search does where another thread has undone its silence."""

    def value_and_gradient(self, scores, y):
        warnings.warn("The line search algorithm did not converge", UserWarning, stacklevel=1)
        return ConditionalNLL().value_and_gradient(scores, y)


def test_failed_line_searches_on_folds_are_no_news():
    tuned = CrossTuned(learner=LBFGS(loss=WarningLoss(), max_iter=3), cv=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tuned.fit(CHAIN, noisy_data(n=60), np.random.default_rng(0))
    assert min(tuned.cv_results_[f"split{k}_n_iter"].min() for k in range(4)) > 0
    with warnings.catch_warnings(record=True) as of_one_fit:
        warnings.simplefilter("always")
        LBFGS(loss=WarningLoss(), max_iter=tuned.best_n_iter_, calibrate=False).fit(
            CHAIN, noisy_data(n=60), np.random.default_rng(0)
        )
    assert 0 < len(caught) == len(of_one_fit)  # those of the fit on all rows


def test_weight_zero_is_an_absent_row():
    weight = np.random.default_rng(3).integers(0, 2, 90)
    learner = CrossTuned(learner=ConjugateGradient(max_iter=8), cv=3)
    data = noisy_data(weight=weight)
    with_zeros = clone(learner).fit(CHAIN, data, np.random.default_rng(0))
    without = clone(learner).fit(CHAIN, data.take(weight > 0), np.random.default_rng(0))
    np.testing.assert_allclose(with_zeros.cells, without.cells, rtol=1e-9)


def test_default_grids():
    data = noisy_data(n=30)
    margin, likelihood = (
        CrossTuned(learner=LBFGS(max_iter=2), cv=2),
        CrossTuned(learner=LBFGS(loss=ConditionalNLL(), max_iter=2), cv=2),
    )
    for tuned in (margin, likelihood):
        tuned.fit(CHAIN, data, np.random.default_rng(0))
    assert [set(setting) for setting in margin.cv_results_["params"]] == [{"loss__scale", "loss__kappa"}] * 6
    assert likelihood.cv_results_["params"] == [{}]
    assert likelihood.best_params_ == {}


def test_what_the_user_passed_stays_as_it_was():
    data = noisy_data()
    X, y = data.codes.T, data.y
    loss, structure = Margin(scale=0.3), ChowLiu()
    tuned = CrossTuned(learner=ConjugateGradient(loss=loss, max_iter=4), param_grid=GRID, cv=3)
    model = BayesNetClassifier(structure=structure, parameters=tuned, random_state=0).fit(X, y)
    assert loss.scale == 0.3
    assert tuned.learner.max_iter == 4
    assert not hasattr(tuned, "best_params_")
    assert model.parameters_ is not tuned
    assert set(model.parameters_.best_params_) == set(GRID)
    assert 0 <= model.parameters_.best_n_iter_ <= 4
    assert isinstance(model.structure_learner_, ChowLiu)
    assert model.structure_learner_ is not structure


def test_progress_is_told(capsys):
    CrossTuned(learner=LBFGS(max_iter=2), param_grid={}, cv=2, verbose=1).fit(
        CHAIN, noisy_data(n=30), np.random.default_rng(0)
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["setting 0, fold 0", "setting 0, fold 1"]


def test_iterations_that_were_run_are_those_told(capsys):
    learner = CrossTuned(learner=LBFGS(max_iter=40), param_grid={"alpha": [0.1, 1.0]}, cv=3, patience=2, verbose=1)
    learner.fit(CHAIN, noisy_data(), np.random.default_rng(0))
    told = [int(line.split()[-2]) for line in capsys.readouterr().out.splitlines()]
    ran = np.transpose([learner.cv_results_[f"split{k}_n_iter"] for k in range(3)])
    assert ran.ravel().tolist() == told


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (CrossTuned(cv=31), "31 folds need at least 31 rows of positive weight, got 30"),
        (CrossTuned(cv=1), "'cv' parameter of CrossTuned"),
        (CrossTuned(learner=StochasticGradient()), "'learner' parameter of CrossTuned"),
        (CrossTuned(param_grid=[]), "param_grid must contain at least one setting"),
        (CrossTuned(param_grid={"loss__sharpness": [1]}), "Invalid parameter 'sharpness'"),
        (CrossTuned(param_grid={"loss__kappa": [-1.0]}), "'kappa' parameter of Margin"),
    ],
)
def test_bad_input_is_named(learner, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(CHAIN, noisy_data(n=30), np.random.default_rng(0))


def test_features_that_are_always_missing_change_nothing():
    """In training and in held-out rows they are summed out; the last feature of the chain is nobody's parent."""
    data = noisy_data(n=60)
    codes = data.codes.T.astype(int)
    codes[:, 2] = -1
    blind = EncodedData.from_codes(codes, data.y, n_states=data.n_states)
    without = EncodedData.from_codes(codes[:, :2], data.y, n_states=data.n_states[:2])
    tuned = [CrossTuned(cv=2, patience=5) for _ in range(2)]
    pair = Structure([-1, 0])
    tables = [
        learner.fit(structure, some, np.random.default_rng(0))
        for learner, structure, some in zip(tuned, (CHAIN, pair), (blind, without), strict=True)
    ]
    assert (tuned[0].best_params_, tuned[0].best_n_iter_) == (tuned[1].best_params_, tuned[1].best_n_iter_)
    np.testing.assert_allclose(tuned[0].score_path_, tuned[1].score_path_)
    np.testing.assert_allclose(tables[0].cells[: len(tables[1].cells)], tables[1].cells, atol=1e-6)

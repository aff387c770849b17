"""Search as a population: the same as one by one, resumable, and honest about what failed."""

import json
import threading

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, RandomizedSearchCV, StratifiedKFold
from support.processes import await_end

from tanlearn import (
    BayesNetClassifier,
    CandidateSets,
    ConditionalNLL,
    EncodedData,
    GradientTraining,
    Hybrid,
    TableEncoder,
    TANClassifier,
    TANSearchCV,
)
from tanlearn.search.checkpoint import SearchCheckpoint, fingerprint
from tanlearn.search.random_search import default_distributions
from tanlearn.search.runs import Part, Run, RunResult, run_population

X, Y = load_iris(return_X_y=True)
BASE = TANClassifier(loss=Hybrid(), n_epochs=8, training=GradientTraining(batch_size=20))
SPACE = {
    "loss__trade_off": loguniform(1, 100),
    "training__learning_rate": [0.01, 0.1],
    "candidates": ["all", "order-free"],
}


def search(**options):
    return TANSearchCV(clone(BASE), SPACE, **{"n_iter": 5, "random_state": 0, **options})


def test_a_population_is_each_training_alone():
    """Bit for bit, whatever the number of threads."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    codes = np.stack([(y + rng.integers(0, 2, 200)) % 3 for _ in range(4)], axis=1)
    part = Part(EncodedData.from_codes(codes[:150], y[:150]), codes[150:].T.astype(np.uint8).copy(), y[150:])
    runs = [Run(i, 0, {"training__learning_rate": 0.01 * (i + 1), "random_state": i}) for i in range(6)]
    by_threads = [
        {result.setting: (result.score, result.n_parameters) for result in run_population(BASE, [part], runs, n_jobs=n)}
        for n in (1, 2, 4)
    ]
    assert by_threads[0] == by_threads[1] == by_threads[2]
    for run in runs:
        alone = clone(BASE).set_params(**run.parameters).fit_encoded(part.data)
        assert alone.tables_.n_parameters == by_threads[0][run.setting][1]


def test_threads_change_nothing_in_a_search():
    one, two = (search(n_jobs=n).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_a_score_is_that_of_the_estimator_by_hand():
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    found = search(cv=splitter, refit=False).fit(X, Y)
    for k, (train, test) in enumerate(splitter.split(X, Y)):
        for i, setting in enumerate(found.cv_results_["params"]):
            model = clone(BASE).set_params(random_state=i, **setting).fit(X[train], Y[train])
            assert model.score(X[test], Y[test]) == found.cv_results_[f"split{k}_test_score"][i]
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    assert found.cv_results_["rank_test_score"][found.best_index_] == 1


@pytest.mark.parametrize("options", [{}, {"class_prior": [0.5, 0.5]}, {"bits": (3, 2)}])
def test_scores_are_those_of_calibrated_models(options):
    """On noise with a rare class, calibration moves predicted classes to the frequent one."""
    rng = np.random.default_rng(0)
    X_noise, y = rng.integers(0, 4, (150, 10)).astype(str), (rng.random(150) < 0.3).astype(int)
    base = TANClassifier(loss=Hybrid(), n_epochs=30, training=GradientTraining(batch_size=20), **options)
    space = {"training__learning_rate": [0.01, 0.05, 0.1]}
    splitter = StratifiedKFold(2, shuffle=True, random_state=1)
    scores = {}
    for calibrate in (True, False):
        given = clone(base).set_params(calibrate=calibrate)
        found = TANSearchCV(given, space, n_iter=3, cv=splitter, random_state=0).fit(X_noise, y)
        for k, (train, test) in enumerate(splitter.split(X_noise, y)):
            for i, setting in enumerate(found.cv_results_["params"]):
                model = clone(given).set_params(random_state=i, **setting).fit(X_noise[train], y[train])
                assert model.score(X_noise[test], y[test]) == found.cv_results_[f"split{k}_test_score"][i]
        assert found.best_estimator_.calibrate == calibrate
        scores[calibrate] = found.best_score_
    if not options:
        assert scores[True] > scores[False]  # 0.69 and 0.62


def test_the_table_of_results_is_scikit_learns():
    theirs = RandomizedSearchCV(BASE, SPACE, n_iter=3, cv=2, random_state=0).fit(X, Y)
    ours = search(n_iter=3, cv=2).fit(X, Y)
    scoring = {"mean_score_time", "std_score_time"}  # ours does not measure it
    costs = {"mean_n_parameters", "mean_size_bits", "mean_n_operations"}
    assert set(ours.cv_results_) == set(theirs.cv_results_) - scoring | costs
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name in SPACE:
        column = ours.cv_results_[f"param_{name}"]
        assert isinstance(column, np.ma.MaskedArray)
        assert column.tolist() == theirs.cv_results_[f"param_{name}"].tolist()
    table = pd.DataFrame(ours.cv_results_)
    assert table.shape == (3, len(ours.cv_results_))
    assert (table["std_fit_time"] >= 0).all()
    assert ours.n_splits_ == theirs.n_splits_ == 2
    assert ours.refit_time_ > 0


def test_best_settings_are_refitted_on_all_rows():
    found = search(cv=3).fit(X, Y)
    again = clone(BASE).set_params(random_state=found.best_index_, **found.best_params_).fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(found.predict_log_proba(X), again.predict_log_proba(X))
    assert found.score(X, Y) > 0.9
    without = search(refit=False).fit(X, Y)
    assert not any(hasattr(without, name) for name in ("best_estimator_", "refit_time_", "classes_"))


def test_interrupted_search_goes_on_where_it_ended(tmp_path):
    whole = search(cv=2).fit(X, Y)
    seen = []
    path = tmp_path / "search.jsonl"
    part = search(cv=2, checkpoint=path, refit=False, callback=lambda result: seen.append(result) or len(seen) == 4)
    part.fit(X, Y)
    assert len(path.read_text().splitlines()) == 5
    with path.open("a") as file:
        file.write('{"setting": 4, "par')  # the machine went down while writing
    trained = []
    resumed = search(cv=2, checkpoint=path, callback=lambda result: bool(trained.append(result))).fit(X, Y)
    assert len(trained) == 6
    np.testing.assert_array_equal(resumed.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_keyboard_interrupt_keeps_what_is_finished(tmp_path):
    path = tmp_path / "search.jsonl"

    def interrupt(result):
        if len(path.read_text().splitlines()) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(checkpoint=path, callback=interrupt).fit(X, Y)
    assert len(path.read_text().splitlines()) == 3


def test_settings_that_did_not_run_everywhere_cannot_win():
    seen = []
    found = search(cv=2, refit=False, callback=lambda result: seen.append(result) or len(seen) == 3).fit(X, Y)
    mean = found.cv_results_["mean_test_score"]
    assert np.isnan(mean).sum() == 4
    assert not np.isnan(mean[found.best_index_])


def test_a_checkpoint_of_another_search_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "search.jsonl"
    search(checkpoint=path, refit=False).fit(X, Y)
    before = path.read_bytes()
    for other, data in ((search(random_state=1), X), (search(n_iter=4), X), (search(), np.sin(X))):
        with pytest.raises(ValueError, match="checkpoint of a search with other data, settings or seed"):
            other.set_params(checkpoint=path).fit(data, Y)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["notes\n", "notes", '{"a": 1}\n', '{"tanlearn_search": 2, "fingerprint": "d"}\n[]\n'])
def test_a_file_that_is_no_checkpoint_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "search.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a search checkpoint"):
        SearchCheckpoint(path, "d")
    assert path.read_text() == text


def test_a_checkpoint_of_another_format_is_refused(tmp_path):
    path = tmp_path / "search.jsonl"
    path.write_text('{"tanlearn_search": 1, "fingerprint": "d"}\n')
    with pytest.raises(ValueError, match=r"format 1, but this version reads only format 2\. Pass another"):
        SearchCheckpoint(path, "d")
    path.write_text('{"tanlearn_search": 3, "fingerprint": "d"}\n')
    with pytest.raises(ValueError, match=r"format 3, but this version reads only format 2\. Upgrade"):
        SearchCheckpoint(path, "d")


def test_failures_are_results_and_all_failures_an_error():
    rates = {"training__learning_rate": [0.01, 1e39]}
    found = TANSearchCV(BASE, rates, n_iter=2, random_state=0, refit=False).fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_score"]).sum() == 1
    assert found.best_params_ == {"training__learning_rate": 0.01}
    with pytest.raises(ValueError, match=r"no settings were trained successfully on every split.*training diverged"):
        TANSearchCV(BASE, {"training__learning_rate": [1e39]}, n_iter=1, random_state=0).fit(X, Y)


def test_weights_count_in_training_and_score():
    weight = np.where(Y == 0, 1.0, 0.0) + np.where(Y == 1, 1.0, 0.0)
    found = search(cv=2, refit=False).fit(X, Y, sample_weight=weight)
    assert found.best_score_ > 0.95  # the third class, hard to tell from the second, weighs nothing


def test_splitters_of_scikit_learn_are_taken():
    with pytest.raises(ValueError, match="groups"):
        search(cv=GroupKFold(2)).fit(X, Y)
    assert search(cv=StratifiedKFold(2), refit=False).fit(X, Y).cv_results_["split1_test_score"].shape == (5,)


def test_progress_names_the_best_so_far(capsys):
    search(n_iter=2, verbose=1, refit=False).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("2/2: setting ")
    assert "best so far " in lines[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": BayesNetClassifier(), "param_distributions": None}, "only TANClassifier has default"),
        (
            {"param_distributions": {"encoder__n_jobs": [1]}, "n_iter": 1},
            "parameters of the encoder and class_weight cannot be searched",
        ),
        ({"checkpoint": "x", "random_state": None}, "a checkpoint needs an integer random_state"),
        (
            {"checkpoint": "x", "estimator__training__callback": print},
            "does not record the effects of the estimator's callback",
        ),
        ({"n_iter": 0}, "'n_iter' parameter"),
        ({"cv": 1.5}, "'cv' parameter"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        search().set_params(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (TANClassifier(), {"loss__gamma", "loss__trade_off", "loss__eta", "candidates__n_candidates"}),
        (TANClassifier(candidates="order-free", loss=Hybrid()), {"loss__gamma", "loss__trade_off", "loss__eta"}),
        (TANClassifier(candidates=[[], [0]], loss=ConditionalNLL()), set()),
    ],
)
def test_a_search_without_distributions_has_its_own(estimator, names):
    common = {f"training__{name}" for name in ("learning_rate", "structure_learning_rate", "temperature", "init")}
    assert set(default_distributions(estimator)) == common | names


def test_a_search_needs_nothing_but_data():
    found = TANSearchCV(
        TANClassifier(n_epochs=5, training=GradientTraining(batch_size=20)), n_iter=3, random_state=0
    ).fit(X, Y)
    assert found.score(X, Y) > 0.85
    assert set(found.best_params_) == set(default_distributions(TANClassifier()))


def test_a_loss_in_the_settings_is_not_shared_between_trainings():
    loss = Hybrid()
    space = {"loss": [loss], "loss__gamma": [0.5, 2, 8], "loss__trade_off": [1, 100]}
    scores = []
    for n_jobs in (1, 4):
        found = TANSearchCV(BASE, space, n_iter=6, cv=3, n_jobs=n_jobs, random_state=0, refit=False).fit(X, Y)
        scores.append(found.cv_results_["mean_test_score"])
        assert loss.get_params() == Hybrid().get_params()
    np.testing.assert_array_equal(*scores)


def test_indices_of_a_splitter_are_those_of_the_users_table():
    weight = np.ones(150)
    weight[:10] = 0
    rows = np.random.default_rng(0).permutation(150)
    splits = [(rows[:100], rows[100:])]
    found = search(cv=splits, refit=False).fit(X, Y, sample_weight=weight)
    train, test = (part[weight[part] > 0] for part in splits[0])
    model = clone(BASE).set_params(random_state=0, **found.cv_results_["params"][0]).fit(X[train], Y[train])
    assert found.cv_results_["split0_test_score"][0] == pytest.approx(model.score(X[test], Y[test]))


def test_default_estimator_can_be_searched_over_its_loss():
    space = {"loss__gamma": [1, 3], "n_epochs": [2]}
    assert TANSearchCV(None, space, n_iter=2, random_state=0).fit(X, Y).best_params_["loss__gamma"] in (1, 3)
    with pytest.raises(ValueError, match="Invalid parameter 'gama'"):
        TANSearchCV(None, {"loss__gama": [1]}, n_iter=1, random_state=0).fit(X, Y)


def test_stopping_a_search_stops_its_trainings():
    epochs, threads = [], set()

    def callback(report):
        epochs.append(report)
        threads.add(threading.current_thread())

    slow = TANClassifier(n_epochs=100_000, training=GradientTraining(callback=callback))
    quick = {"n_epochs": [1, 100_000]}
    TANSearchCV(slow, quick, n_iter=2, n_jobs=2, random_state=0, refit=False, callback=lambda result: True).fit(X, Y)
    for thread in threads - {threading.current_thread()}:
        await_end(thread)
    assert len(epochs) < 100_000


def test_nothing_of_an_earlier_search_stays():
    found = search().fit(X, Y)
    found.set_params(refit=False).fit(X[:, :2], Y)
    assert found.n_features_in_ == 2
    with pytest.raises(NotFittedError):
        found.predict(X)


def test_a_rare_category_does_not_end_a_search():
    table = np.where(np.arange(150) == 7, "rare", "common")[:, np.newaxis]
    strict = clone(BASE).set_params(encoder=TableEncoder(handle_unknown="error"))
    scores = TANSearchCV(strict, SPACE, n_iter=1, cv=3, random_state=0, refit=False).fit(table, Y).cv_results_
    assert np.isfinite(scores["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore:discretization left")
def test_missing_values_are_summed_out_or_named_by_the_row_of_the_users_table():
    table = X.copy()
    table[::7, 2] = np.nan
    assert search().fit(table, Y).best_score_ > 0.8
    cyclic = clone(BASE).set_params(candidates="unconstrained")
    backwards = [(np.arange(149, 49, -1), np.arange(50))]
    with pytest.raises(ValueError, match=r"A pseudo-TAN.* first of X column 2 in row 147"):
        TANSearchCV(cyclic, {"training__learning_rate": [0.01, 0.1]}, n_iter=2, cv=backwards).fit(table, Y)


def test_fingerprints_see_content_and_not_representations():
    sets = [CandidateSets.from_lists(lists) for lists in ([[], [0], [0], [1]], [[], [0], [1], [0]])]
    orders = np.arange(2000), np.arange(2000)
    orders[1][[1000, 1001]] = 1001, 1000
    for one, other in (sets, orders, (Slotted(1), Slotted(2)), ({"a": 1}, {"a": 2}), ([1], [1.0])):
        digests = [fingerprint(clone(BASE).set_params(candidates=value), [], []) for value in (one, one, other)]
        assert digests[0] == digests[1] != digests[2]
    with pytest.raises(ValueError, match="a checkpoint must identify the search"):
        fingerprint(clone(BASE).set_params(candidates=lambda: 0), [], [])


class Slotted:
    """An object without a dictionary and without a representation of its own."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Slotted, (self.value,)


def test_a_header_that_was_cut_off_is_written_again(tmp_path):
    path = tmp_path / "search.jsonl"
    SearchCheckpoint(path, "d")
    whole = path.read_text()
    path.write_text(whole[:20])
    assert SearchCheckpoint(path, "d").finished == []
    assert path.read_text() == whole


def test_results_read_well():
    assert repr(RunResult(0, 1, 0.5, 10, 2.0)).startswith("RunResult(setting=0, part=1, score=0.5")

"""Search as a population: the same as one by one, resumable, and honest about what failed."""

import json

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold

from tanlearn import EncodedData, Hybrid, TANClassifier, TANSearchCV
from tanlearn.checkpoint import SearchCheckpoint
from tanlearn.population import Part, Run, RunResult, run_population

X, Y = load_iris(return_X_y=True)
BASE = TANClassifier(loss=Hybrid(), n_epochs=8, batch_size=20)
SPACE = {"loss__trade_off": loguniform(1, 100), "learning_rate": [0.01, 0.1], "candidates": ["all", "order-free"]}


def search(**options):
    return TANSearchCV(BASE, SPACE, **{"n_iter": 5, "random_state": 0, **options})


def test_a_population_is_each_training_alone():
    """Bit for bit, whatever the number of threads."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    codes = np.stack([(y + rng.integers(0, 2, 200)) % 3 for _ in range(4)], axis=1)
    part = Part(EncodedData.from_codes(codes[:150], y[:150]), codes[150:].T.astype(np.uint8).copy(), y[150:])
    runs = [Run(i, 0, {"learning_rate": 0.01 * (i + 1), "random_state": i}) for i in range(6)]
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


def test_best_settings_are_refitted_on_all_rows():
    found = search(cv=3).fit(X, Y)
    again = clone(BASE).set_params(random_state=found.best_index_, **found.best_params_).fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(found.predict_log_proba(X), again.predict_log_proba(X))
    assert found.score(X, Y) > 0.9
    assert not hasattr(search(refit=False).fit(X, Y), "best_estimator_")


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


@pytest.mark.parametrize("text", ["notes\n", "notes", '{"a": 1}\n', '{"tanlearn_search": 1, "fingerprint": "d"}\n[]\n'])
def test_a_file_that_is_no_checkpoint_is_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "search.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match="no search checkpoint"):
        SearchCheckpoint(path, "d")
    assert path.read_text() == text


def test_a_checkpoint_of_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "search.jsonl"
    path.write_text('{"tanlearn_search": 2, "fingerprint": "d"}\n')
    with pytest.raises(ValueError, match="format 2, this version reads up to 1: upgrade"):
        SearchCheckpoint(path, "d")


def test_failures_are_results_and_all_failures_an_error():
    rates = {"learning_rate": [0.01, 1e39]}
    found = TANSearchCV(BASE, rates, n_iter=2, random_state=0, refit=False).fit(X, Y)
    assert np.isnan(found.cv_results_["mean_test_score"]).sum() == 1
    assert found.best_params_ == {"learning_rate": 0.01}
    with pytest.raises(ValueError, match=r"no settings were trained on every split.*training diverged"):
        TANSearchCV(BASE, {"learning_rate": [1e39]}, n_iter=1, random_state=0).fit(X, Y)


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
        ({"param_distributions": None}, "param_distributions must name what to search over"),
        ({"param_distributions": {"encoder__n_jobs": [1]}, "n_iter": 1}, "encoder__n_jobs cannot be searched"),
        ({"checkpoint": "x", "random_state": None}, "a checkpoint needs an int random_state"),
        ({"n_iter": 0}, "'n_iter' parameter"),
        ({"cv": 1.5}, "'cv' parameter"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        search().set_params(**options).fit(X, Y)


def test_results_read_well():
    assert repr(RunResult(0, 1, 0.5, 10, 2.0)).startswith("RunResult(setting=0, part=1, score=0.5")

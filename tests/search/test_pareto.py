"""Pareto fronts: what is dominated is dropped, budgets are kept, threads change nothing."""

import builtins

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from tanlearn import GradientTraining, TANClassifier, pareto_search
from tanlearn.search.pareto import not_dominated

# Exclusive or, which needs an edge, and two features that say a little without one.
X = np.random.default_rng(0).integers(0, 2, (300, 4))
Y = X[:, 0] ^ X[:, 1]
X[:, 2:] = np.where(np.random.default_rng(1).random((300, 2)) < 0.6, X[:, 2:], Y[:, np.newaxis])
BASE = TANClassifier(
    candidates="all",
    n_epochs=12,
    training=GradientTraining(batch_size=20, learning_rate=0.1, structure_learning_rate=0.1),
)
COSTS = ["mean_test_score", "mean_size_bits", "mean_n_operations"]


def search(**options):
    return pareto_search(BASE, X, Y, **{"bits": [None, (1, 0), (3, 1)], "size_weight": [0, 0.1], **options})


@pytest.fixture(scope="module")
def found():
    return search(n_jobs=1)


few_costs = st.one_of(st.integers(0, 3).map(float), st.just(np.nan))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[few_costs] * width), min_size=1, max_size=12)))
def test_exactly_the_dominated_are_dropped(points):
    def is_dominated(point):
        return any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)

    complete = [i for i, point in enumerate(points) if not any(map(np.isnan, point))]
    expected = [i for i in complete if not is_dominated(points[i]) and points[i] not in points[:i]]
    assert not_dominated(points).tolist() == expected


def test_no_result_beats_one_of_the_front(found):
    table = pd.DataFrame(found.cv_results)
    assert len(table) == 6
    assert table["mean_size_bits"].is_monotonic_increasing
    np.testing.assert_array_equal(found.front, not_dominated(table[COSTS] * [-1, 1, 1]))
    assert 1 < len(found.front) < 6
    assert table["mean_test_score"].max() == table["mean_test_score"][found.front].max()


def test_rows_of_the_table_belong_together(found):
    table = pd.DataFrame(found.cv_results)
    assert {row["bits"] for row in table["params"]} == {None, (1, 0), (3, 1)}
    for name in ("bits", "size_weight"):
        assert found.cv_results[f"param_{name}"].tolist() == [setting[name] for setting in table["params"]]
    for row, model in zip(found.front, found.estimators, strict=True):
        setting = found.cv_results["params"][row]
        assert {name: model.get_params()[name] for name in setting} == setting


def test_results_are_those_of_the_estimator_by_hand():
    splitter = StratifiedKFold(2, shuffle=True, random_state=1)
    table = search(cv=splitter, bits=[2], size_weight=[0.1], random_state=3).cv_results
    models = []
    for train, test in splitter.split(X, Y):
        model = clone(BASE).set_params(bits=2, size_weight=0.1, random_state=3)
        models.append((model.fit(X[train], Y[train]), model.score(X[test], Y[test])))
    assert table["mean_test_score"] == pytest.approx([np.mean([score for _, score in models])])
    assert table["mean_size_bits"] == [np.mean([model.size_bits_ for model, _ in models])]
    assert table["mean_n_operations"] == [8]


def test_threads_change_nothing(found):
    other = search(n_jobs=2)
    assert found.cv_results.keys() == other.cv_results.keys()
    for name in found.cv_results.keys() - {"mean_fit_time", "std_fit_time"}:
        np.testing.assert_array_equal(found.cv_results[name], other.cv_results[name])
    np.testing.assert_array_equal(found.front, other.front)
    for model, twin in zip(found.estimators, other.estimators, strict=True):
        np.testing.assert_array_equal(model.tables_.cells, twin.tables_.cells)


def test_the_best_of_a_budget_is_of_the_front_and_within(found):
    assert found.best_within() is found.estimators[found.cv_results["mean_test_score"][found.front].argmax()]
    sizes = [model.size_bits_ for model in found.estimators]
    for size in sizes:
        assert found.best_within(size_bits=size, n_operations=8).size_bits_ <= size
    smallest = found.best_within(size_bits=min(sizes))
    assert smallest.bits == (1, 0)
    assert smallest.n_features_in_ == 4
    with pytest.raises(ValueError, match=f"has size_bits <= {min(sizes) - 1}: the smallest has {min(sizes)} bits"):
        found.best_within(size_bits=min(sizes) - 1)
    with pytest.raises(ValueError, match=r"front has n_operations <= 7: .*the fastest needs 8 operations"):
        found.best_within(n_operations=7)
    with pytest.raises(ValueError, match=r"front has size_bits <= 1 and n_operations <= 7: "):
        found.best_within(size_bits=1, n_operations=7)


def test_further_parameters_reach_the_loss_and_files_are_gone_on_from(tmp_path, capsys):
    options = {"bits": [2], "size_weight": [0.1], "param_grid": {"loss__gamma": [1, 3]}, "verbose": 1}
    first = search(checkpoint=tmp_path / "search", **options)
    assert set(first.cv_results["param_loss__gamma"]) == {1, 3}
    assert first.estimators[0].loss.gamma == first.cv_results["param_loss__gamma"][first.front[0]]
    assert capsys.readouterr().out.count("accuracy") == 2
    again = search(checkpoint=tmp_path / "search", **options)
    assert capsys.readouterr().out == ""
    for name, values in again.cv_results.items():
        np.testing.assert_array_equal(values, first.cv_results[name])


def test_trainings_that_fail_are_not_of_the_front():
    found = search(bits=[None], size_weight=[0], param_grid={"training__learning_rate": [0.01, 1e39]})
    assert np.isnan(found.cv_results["mean_test_score"]).tolist() == [False, True]  # what has no size comes last
    assert found.front.tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": [2, 99]}, "bits must be None, a number of bits from 1 to 16"),
        ({"bits": []}, "'bits' need to be a non-empty sequence"),
        ({"size_weight": [-1.0]}, "'size_weight' parameter"),
        ({"param_grid": {"encoder__n_jobs": [1]}}, "parameters of the encoder and class_weight cannot be searched"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        search(**options)


def test_plot_shows_all_results_and_the_front(found):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = found.plot(figure.subplots())
    (points,) = axes.collections
    (line,) = axes.lines
    assert len(points.get_offsets()) == 6
    assert line.get_xdata().tolist() == found.cv_results["mean_size_bits"][found.front].tolist()
    assert (np.diff(line.get_ydata()) <= 0).all()
    assert axes.get_ylabel() == "held-out error [%]"


def test_plot_says_what_to_install(found, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "tanlearn\[plot\]"'):
        found.plot()

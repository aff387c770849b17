"""The comparison of gradient TAN with hill climbing: its tables, its file of cells and its report."""

import numpy as np
import pytest

from benchmarks.climbing import __main__ as command
from benchmarks.climbing.learners import BUDGETED, CLIMBERS, DISCRIMINATIVE, GRADIENT, OTHERS, all_learners
from benchmarks.climbing.report import Shape, budget_curves
from benchmarks.climbing.tables import NAMES, TWINS, load
from tanlearn.baselines import LEARNERS
from tanlearn.comparison import CellResult, Comparison

SHORT = ("NB ML", "TAN-CMI ML", "HC-BDeu ML", "TAN-OMI-CR ML", "NB HYB", "TAN Subset HYB, 10 epochs")


@pytest.fixture
def folder(tmp_path):
    """Return a folder of data with two small sets, one of them with missing values and a rare class."""
    rng = np.random.default_rng(0)
    (tmp_path / "raw").mkdir()
    for name in ("iris", "glass"):
        y = np.repeat([0, 1, 2], [40, 40, 3])
        X = y[:, np.newaxis] + rng.integers(0, 3, (83, 4))
        missing = np.zeros(X.shape, bool)
        missing[:6, 0] = name == "glass"
        np.savez(tmp_path / "raw" / f"{name}.npz", X=X, y=y, is_categorical=np.ones(4, bool), missing=missing)
    return tmp_path


def test_tables_have_complete_rows_of_frequent_classes(folder):
    assert load("iris", folder).X.shape == (80, 4)
    glass = load("glass", folder)
    assert glass.X.shape == (74, 4)
    assert np.unique(glass.y).tolist() == [0, 1]


def test_names_are_known_and_distinct():
    assert len(NAMES) == len(set(NAMES)) >= 40
    assert set(TWINS) <= set(NAMES)
    learners = all_learners()
    assert {*OTHERS, *CLIMBERS, *DISCRIMINATIVE, *GRADIENT} == {name for name in learners if name in LEARNERS}
    assert {name for own in BUDGETED.values() for name in own} <= learners.keys()
    assert all(learner.name == name for name, learner in learners.items())
    model = learners["TAN Subset HYB, 30 epochs"].make()
    assert (model.n_epochs, model.candidates) == (30, "subset")
    assert learners["Tabu-BDeu ML, 10 restarts"].make().structure.n_restarts == 10


def test_a_run_goes_on_is_packed_and_reported(folder, capsys, monkeypatch):
    pytest.importorskip("scikit_posthocs")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("benchmarks.climbing.report.GRADIENT", SHORT[-1:])
    groups = {"gradient": SHORT[-1:], "climber": SHORT[2:4], "hybrid": ("NB HYB",), "other": SHORT[:2]}
    monkeypatch.setattr("benchmarks.climbing.report.GROUPS", groups)
    results = folder / "results"
    options = ["--data", str(folder), "--results", str(results)]
    sets = ["--sets", "iris", "glass"]
    command.main(["run", *sets, "--learners", *SHORT[:3], *options])
    command.main(["pack", "--results", str(results)])
    assert (results / "comparison.csv").read_bytes() == b""
    capsys.readouterr()
    command.main(["run", *sets, "--learners", *SHORT, *options])
    assert "60/60 glass" in capsys.readouterr().err
    comparison = Comparison.load(results / "comparison.csv")
    assert len(comparison.cells) == 2 * 6 * 10
    assert comparison.failures == []
    command.main(["report", *options, "--output", str(folder)])
    text = (folder / "README.md").read_text()
    assert "TAN Subset HYB, 10 epochs has a mean error that is" in text
    assert "| categorical features only | 2 |" in text
    for picture in ("ranks", "pairs", "budgets"):
        assert (folder / f"{picture}.png").stat().st_size > 1000


def cell(dataset, learner, fold, error, seconds):
    """Return a finished cell."""
    names = {"dataset": dataset, "learner": learner, "data_id": dataset, "learner_id": learner}
    shape = {"n_train": 80, "n_test": 20, "n_folds": 2, "seed": 0, "settings": "", "versions": ""}
    return CellResult(repeat=1, fold=fold, error=error, fit_seconds=seconds, **names, **shape)


def test_a_budget_takes_the_most_expensive_setting_in_time():
    """Whatever its error is; a table on which nothing is in time has no error."""
    first, *_, last = BUDGETED["gradient TAN"]
    cells = [
        cell(name, learner, fold, error + fold, seconds)
        for name, factor in (("iris", 1), ("letter", 100))
        for learner, error, seconds in ((first, 10.0, 0.2 * factor), (last, 20.0, 2.0 * factor))
        for fold in (1, 2)
    ]
    curve = budget_curves(Comparison(cells))["gradient TAN"]
    np.testing.assert_array_equal(curve[:, 0], [np.nan, 11.5, 11.5, 21.5, 21.5])
    np.testing.assert_array_equal(curve[:, 1], [np.nan] * 5)


def test_shapes_count_kinds_of_features(folder):
    shape = Shape(load("iris", folder), 64)
    assert (shape.n_features, shape.n_categorical, shape.n_classes, shape.n_train) == (4, 4, 2, 64)

"""The comparison of gradient TAN with hill climbing: its tables, its file of cells and its report."""

import numpy as np
import pytest

from benchmarks.climbing import __main__ as command
from benchmarks.climbing.budgets import budget_curves
from benchmarks.climbing.details import all_datasets, failures, median, probability, signed
from benchmarks.climbing.learners import BUDGETED, CLIMBERS, DISCRIMINATIVE, GRADIENT, OTHERS, all_learners
from benchmarks.climbing.report import Duel, Shape, compared, crossing, digits, exceptions
from benchmarks.climbing.tables import NAMES, TWINS, load
from benchmarks.shared.reports import joined
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
    assert "the mean error of TAN Subset HYB, 10 epochs is" in " ".join(text.split())
    assert "| only categorical features | 2 |" in text
    details = (folder / "details.md").read_text()
    assert all(f"| {name} |" in details for name in (*SHORT, "iris", "glass"))
    assert "## Failures" not in details
    for picture in ("ranks", "pairs", "budgets"):
        assert (folder / f"{picture}.png").stat().st_size > 1000


def cell(dataset, learner, fold, error, seconds, **options):
    """Return a finished cell."""
    names = {"dataset": dataset, "learner": learner, "data_id": dataset, "learner_id": learner}
    shape = {"n_train": 80, "n_test": 20, "n_folds": 2, "seed": 0, "settings": "", "versions": ""}
    return CellResult(repeat=1, fold=fold, error=error, fit_seconds=seconds, **names, **shape, **options)


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


def duel_of(gaps, seconds=(2.0, 0.5)):
    """Return the pair of two learners whose errors differ by a gap on each data set, in all folds nearly the same."""
    cells = [
        cell(f"set {k}", name, fold, 10.0 + (gap + 0.04 * fold) * is_first, seconds[1 - is_first], log_loss=gap)
        for k, gap in enumerate(gaps)
        for name, is_first in (("one", 1), ("two", 0))
        for fold in (1, 2, 3, 4)
    ]
    return Duel(Comparison(cells), "one", "two")


def test_a_pair_counts_significant_differences():
    duel = duel_of([-5.0, -4.0, 3.0, 0.0])
    assert (duel.won, duel.lost, duel.score) == (["set 0", "set 1"], ["set 2"], "2 / 1 / 1")
    assert (duel.n, round(duel.difference, 3), duel.times) == (4, 1.4, 4.0)
    assert duel.row() == ["one", "two", "-1.40", "2 / 1 / 1", "0.62", "+0.000", "4 x"]


@pytest.mark.parametrize(
    ("gaps", "words"),
    [
        ([-5.0] * 6 + [-4.0], "Yes. Over 7 data sets, the mean error of one is 4.76 percentage points lower than that"),
        ([5.0] * 6 + [4.0], "No. Over 7 data sets, the mean error of one is 4.96 percentage points higher than that"),
        (
            [5.0, -5.0, 0.1],
            "The difference is not significant. Over 3 data sets, the mean error of one is 0.13 percentage points",
        ),
    ],
)
def test_a_sentence_follows_the_tests(gaps, words):
    assert compared(duel_of(gaps)).startswith(words)


def test_exceptions_name_kinds_and_data_sets():
    kinds = {"many rows": duel_of([-1.0, -1.0]), "few rows": duel_of([1.0, 1.0])}
    text = exceptions(duel_of([-5.0, 3.0]), kinds)
    assert text.startswith("On data with few rows (+1.10), its mean error is not lower than that of two.")
    assert text.endswith("two is significantly better on set 1. one is significantly better on set 0.")
    assert "lower than that of two on all kinds of data" in exceptions(duel_of([-5.0]), {"few rows": duel_of([-1.0])})


def test_equal_seconds_name_the_lowest_mean_error():
    rows = {"gradient": [9.0, 5.0, 5.0, 5.0, 5.0], "climbing": [6.0] * 4 + [4.0]}
    curves = {kind: np.array(errors)[:, np.newaxis] for kind, errors in rows.items()}
    curves["climbing"][1] = np.nan  # not in time: this budget does not count
    assert crossing(curves).endswith(
        "climbing has the lowest mean error at 0.1 s and 10 s, and gradient has the lowest mean error at 1 s and 3 s."
    )


def test_words():
    assert [joined(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert [signed(value, 2) for value in (-0.001, 0.256, -3.0)] == ["+0.00", "+0.26", "-3.00"]
    assert [probability(p) for p in (1.0, 0.0123, 1e-5)] == ["1", "0.012", "< 0.001"]
    assert [digits(ratio) for ratio in (0.123, 9.94, 31.2, 1234.5)] == ["0.12", "9.9", "31", "1,234"]


def test_details_mark_the_best_and_name_failures():
    cells = [cell("iris", name, fold, error + 0.1 * fold, 1.0) for name, error in BEST.items() for fold in (1, 2, 3)]
    cells += [cell("wine", "a", fold, 1.0, fold) for fold in (1, 2)]
    cells += [cell("wine", "b", fold, None, None, failure="too long") for fold in (1, 2)]
    whole = Comparison(cells)
    text = all_datasets(whole, list(BEST))
    assert "| iris | **5.20** | 9.20 |" in text
    assert "| wine | **1.00** | - |" in text
    assert failures(whole) == ["## Failures", FAILED]
    assert failures(Comparison(cells[:6])) == []
    assert (median(whole, "a", "fit_seconds"), median(whole, "b", "n_evaluations")) == (1.25, None)


BEST = {"a": 5.0, "b": 9.0}
FAILED = "| learner | reason | data sets |\n| --- | --- | --- |\n| b | too long | wine |"

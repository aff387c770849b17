"""Figures 5 and 6 on a small table: choices by validation rows, resumption, and the report."""

import json

import numpy as np
import pytest

from benchmarks.paper.resource_efficient import __main__ as command
from benchmarks.paper.resource_efficient import report
from benchmarks.paper.shared import data
from tanlearn import EncodedData

N_FOLDS = 2


def problem(name):
    """Return two folds of a set: exclusive or, and two features that say a little."""
    folds = []
    for fold in range(N_FOLDS):
        rng = np.random.default_rng(fold)
        X = rng.integers(0, 2, (500, 4))
        y = X[:, 0] ^ X[:, 1]
        X[:, 2:] += y[:, np.newaxis]
        folds.append(data.split(EncodedData.from_codes(X, y, n_states=[3] * 4), slice(300), slice(300, 500)))
    return data.Problem(name, tuple(folds))


@pytest.fixture(scope="module", autouse=True)
def small():
    """Give the command the small table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "load", lambda name, folder: problem(name))
        patch.setitem(command.EPOCHS, "letter", 6)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return where the results of both experiments are, and the lines."""
    folder = tmp_path_factory.mktemp("results")
    command.main(["run", "--sets", "letter", "--budget", "2", "--n-jobs", "1", "--results", str(folder)])
    lines = [json.loads(line) for line in (folder / "resource_efficient.jsonl").read_text().splitlines()]
    return folder, lines


def line(run, part, error, bits=None, rounded=()):
    """Return a line as choices read it."""
    common = {"learner": report.NB, "fold": 1, "rows": 10, "run": run, "part": part}
    return {**common, "error": error, "bits": bits, "rounded": list(rounded)}


def test_choices_are_by_validation_rows():
    rounded = [0.5] * len(report.FORMATS)
    rounded[report.FORMATS.index((2, 1))] = 0.25
    lines = [
        line(0, "validation", 0.3, rounded=rounded),
        line(1, "validation", 0.2, rounded=[0.4] * len(rounded)),
        line(0, "validation", 0.4, [1, 2]),
        line(1, "validation", 0.3, [2, 1]),
        line(1, "validation", 0.3, [3, 0]),
        line(0, "test", 0.0, [1, 2]),
    ]
    found = {column: (model.run, model.bits) for (_, column), model in report.choices(lines).items()}
    assert found[report.NB, report.FLOAT, None] == (1, None)
    assert found[report.NB, report.TRAINED, 3] == (1, (2, 1))
    assert found[report.NB, report.ROUNDED, 3] == (0, (2, 1))
    assert found[report.NB, report.ROUNDED, 4] == (1, (1, 3))
    assert report.best_float(lines, report.NB) == {1: 1}


def test_only_what_is_chosen_meets_test_rows(finished):
    lines = finished[1]
    scored = [found for found in lines if found["part"] == "validation" and found["learner"] != command.SUBSET]
    assert len(scored) == 2 * 2 * N_FOLDS * 49
    tested = {
        (found["learner"], found["run"], found["fold"], str(found["bits"]))
        for found in lines
        if found["part"] == "test" and found["learner"] != command.SUBSET
    }
    chosen = {
        (model.learner, model.run, fold, str(list(model.bits) if model.way == report.TRAINED else None))
        for (fold, _), model in report.choices(lines).items()
    }
    assert tested == chosen


def test_a_tree_is_that_of_its_run(finished):
    lines = finished[1]
    place = ("run", "fold", "part", "naive_bayes_cells")
    free = [found for found in lines if found["learner"] == command.SUBSET and not found["size_weight"]]
    cells = {tuple(found[name] for name in place): found["n_cells"] for found in free}
    trees = [found for found in lines if found["learner"] == command.TAN]
    assert trees
    assert all(found["n_cells"] == cells[tuple(found[name] for name in place)] for found in trees)
    assert {found["n_cells"] for found in lines if found["learner"] == command.NB} == {2 + 4 * 3 * 2}


def test_a_run_goes_on_to_the_same_results(finished, tmp_path):
    text = (finished[0] / "resource_efficient.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "resource_efficient.jsonl"
    path.write_text("".join(text[:-40]) + text[-40][:30])
    command.main(["run", "--sets", "letter", "--budget", "2", "--n-jobs", "2", "--results", str(tmp_path)])
    again = [json.loads(found) for found in path.read_text().splitlines()]
    errors = {command.key(found): (found["error"], found.get("rounded")) for found in again}
    assert errors == {command.key(found): (found["error"], found.get("rounded")) for found in finished[1]}
    assert len(again) == len(errors)


def test_the_report_says_what_was_found(finished, tmp_path):
    folder, lines = finished
    command.main(["report", "--results", str(folder), "--output", str(tmp_path)])
    text = (tmp_path / "report.md").read_text()
    budget, columns = report.figure_6(lines)
    assert budget == 2
    folds = columns[command.NB, report.TRAINED, 8]
    assert sorted(model.fold for model in folds) == [1, 2]
    assert f"{100 * np.mean([model.error for model in folds]):.2f} |" in text.split(f"| {command.NB}, trained")[1]
    prices = report.figure_5(lines)[1]
    free = prices[0.0]
    assert f"| 0 | {100 * np.mean([found['error'] for found in free]):.2f} |" in text
    assert [found["n_cells"] for found in prices[100.0]] == [26, 26]
    for picture in ("few-bits-letter", "size-letter"):
        assert (tmp_path / "figures" / f"{picture}.png").stat().st_size > 10_000


def test_what_is_not_complete_is_not_reported(finished):
    lines = finished[1]
    without = [found for found in lines if found["learner"] != command.NB or found["part"] != "test"]
    assert report.figure_6(without) == (0, {})
    assert report.figure_5([found for found in lines if found["size_weight"] != 0.01]) == (0, {})
    more = {**lines[0], "run": 2, "part": "validation", "error": 0.0}
    assert report.figure_5([*lines, more])[0] == 2

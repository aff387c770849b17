"""Time until learners reach given errors: the lines of results, the first point of an error, and the report."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.climbing import time_to_accuracy as timing
from benchmarks.shared.data import Problem, split
from benchmarks.shared.results import read
from tanlearn import EncodedData
from tanlearn.baselines import LEARNERS

FOLDER = Path(timing.__file__).parent


def line(curve, seconds=9.0, error=4.0, learner=timing.PAPER):
    """Return a finished line."""
    return {"set": "letter", "learner": learner, "curve": curve, "seconds": seconds, "error": error, "n_train": 1000}


@pytest.mark.parametrize(
    ("level", "expected"), [(20.0, (0.1, 1)), (10.0, (0.2, 2)), (5.0, (0.4, 4)), (4.0, (9.0, None)), (3.9, None)]
)
def test_an_error_is_reached_at_its_first_point_or_by_the_fit(level, expected):
    assert timing.reached(line([[0.1, 1, 15.0], [0.2, 2, 10.0], [0.3, 3, 12.0], [0.4, 4, 5.0]]), level) == expected


def test_seconds_of_tensorflow_are_epochs_times_steps():
    own = line([[0.1, 7, 15.0]])
    assert timing.epoch_seconds(own) == pytest.approx(10 * 5.6e-3)  # 1,000 rows in steps of 100
    assert timing._tensorflow(own, 15.0) == pytest.approx(7 * 10 * 5.6e-3)
    assert timing._tensorflow(own, 4.0) is None  # by the fit, which has no number of epochs


def test_the_first_learner_is_that_of_least_seconds():
    lines = [line([[0.5, 1, 10.0]], learner="TAN Subset HYB"), line([[0.3, 1, 10.0]], learner="HC-BDeu ML")]
    pair = timing.winners(lines, [10.0, 1.0])[10.0]
    assert [one["learner"] for one in pair] == ["TAN Subset HYB", "HC-BDeu ML"]
    assert not timing._is_gradient_first(pair, 10.0)
    assert timing._is_gradient_first((pair[0], None), 10.0)
    assert timing.winners(lines, [1.0])[1.0] == (None, None)


@pytest.mark.parametrize("learner", ["TAN-CMI ML", "HC-BDeu ML", "TAN-OMI-MM HYB", "TAN Order-free HYB"])
def test_lines_have_errors_along_the_way_and_in_the_end(learner):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = np.stack([(y + rng.integers(0, 2, 300)) % 3, rng.integers(0, 2, 300), y == 0], axis=1).astype(int)
    X[:, 1] = (X[:, 0] > 0) ^ (rng.random(300) < 0.1)
    data = EncodedData.from_codes(X, y)
    problem = Problem("letter", (split(data, slice(200), slice(200, None)),))
    found = timing.measure({"set": "letter", "learner": learner}, problem)
    model = LEARNERS[learner].make(random_state=0).fit(X[:200].astype(str), y[:200])
    assert found["error"] == pytest.approx(100 * (1 - model.score(X[200:].astype(str), y[200:])), abs=1e-3)
    assert found["n_train"] == 200
    assert found["seconds"] > 0
    seconds = [entry[0] for entry in found["curve"]]
    assert seconds == sorted(seconds)
    assert (learner in ("TAN-CMI ML", "TAN-OMI-MM HYB")) == (not found["curve"])


def test_the_committed_report_is_that_of_the_committed_results(tmp_path):
    pytest.importorskip("matplotlib")
    timing.main(["report", "--output", str(tmp_path)])
    committed, written = ((folder / "time_to_accuracy.md").read_text() for folder in (FOLDER, tmp_path))
    assert written.rpartition("Made by")[0] == committed.rpartition("Made by")[0]
    assert (tmp_path / "time_to_accuracy.png").stat().st_size > 1000


def test_each_planned_line_is_finished_and_the_paper_reproduces_its_run():
    lines = read(FOLDER / "results" / timing.FILE)
    found = {(own["set"], own["learner"]): own for own in lines}
    assert found.keys() == {(own["set"], own["learner"]) for own in timing.planned(timing.LEVELS, timing.NAMES)}
    # The errors of these runs in the results of benchmarks/paper/differentiable_tan.
    assert [round(found[name, timing.PAPER]["error"], 2) for name in timing.LEVELS] == [8.91, 2.27]

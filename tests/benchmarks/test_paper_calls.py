"""The page of estimator calls: it is up to date, its calls run, and they are the estimators of the experiments."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

import tanlearn
from benchmarks.paper import calls
from benchmarks.paper.differentiable_tan.cells import CELLS
from benchmarks.paper.differentiable_tan.choices import in_one_line
from benchmarks.paper.maximum_margin.variants import Penalized, RandomStart
from benchmarks.paper.order_based.learners import FromThird
from benchmarks.shared.data import Problem, split
from tanlearn import BayesNetClassifier, EncodedData, baselines

PAGE = Path(calls.__file__).with_name("calls.md")
NAMES = {
    **{name: getattr(tanlearn, name) for name in tanlearn.__all__},
    **{name: getattr(baselines, name) for name in baselines.__all__},
    "SVC": SVC,
    "FromThird": FromThird,
    "RandomStart": RandomStart,
    "Penalized": Penalized,
    "BITS": 4,
    "WEIGHT": 0.01,
}


@pytest.fixture(scope="module")
def rows():
    """Return a few rows of 16 features, and their classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    return (rng.integers(0, 2, (60, 16)) + y[:, np.newaxis]) % 3, y


def estimators():
    """Return the calls of the page."""
    return re.findall(r"\| `(.*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_is_that_of_the_definitions(tmp_path):
    calls.main(["--output", str(tmp_path)])
    assert (tmp_path / "calls.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_each_row_has_a_call_that_makes_its_estimator():
    text = PAGE.read_text(encoding="utf-8")
    found = estimators()
    assert len(found) == len(re.findall(r"^\| (?!---)(?!.*estimator \|$)", text, re.MULTILINE)) > 150
    for call in found:
        if "X, y" not in call:
            made = in_one_line(eval(call, dict(NAMES)))
            assert made == call.replace("BITS", "4").replace("WEIGHT", "0.01")


def drawn_run(cell, name):
    """Return the settings of a run."""
    return cell.draw("narrow", name, 0, 0), 2


@pytest.mark.parametrize("cell", [cell for cell in CELLS if "letter" in cell.sets], ids=lambda cell: cell.name)
def test_calls_have_the_settings_of_the_runs(cell, rows):
    X, y = rows
    data = EncodedData.from_codes(X, y)
    problem = Problem("letter", (split(data, slice(0, 50), slice(50, None)),))
    drawn, n_epochs = drawn_run(cell, "letter")
    run = cell.estimator.set_params(**cell.parameters(problem, problem.folds[0].data, drawn, n_epochs))
    text = cell.call(Problem("letter", ()), drawn, n_epochs)
    call = eval(text, {**NAMES, "X": X, "y": y})
    assert call.random_state == run.random_state
    if cell.is_closed_form:
        assert call.parameters is run.parameters is None
        return
    if cell.has_dropout:
        assert repr(call.parameters) == repr(run.parameters)
    elif isinstance(call, BayesNetClassifier):
        expected = (run.loss, run.n_epochs, run.training.learning_rate, run.training.batch_size, run.training.init)
        own = call.parameters
        assert repr((own.loss, own.n_epochs, own.learning_rate, own.batch_size, own.init)) == repr(expected)
        assert not own.calibrate
    else:
        assert type(call) is type(run)
        names = ("loss", "n_epochs", "training", "calibrate")
        assert [repr(getattr(call, name)) for name in names] == [repr(getattr(run, name)) for name in names]


def test_training_the_candidates_of_one_structure_is_stochastic_gradient(rows):
    """The runs use a gradient TAN for fixed structures, and the calls the parameter learner: models are equal."""
    X, y = rows
    data = EncodedData.from_codes(X, y)
    problem = Problem("letter", (split(data, slice(0, 50), slice(50, None)),))
    cell = next(cell for cell in CELLS if cell.name == "Chow-Liu HYB")
    drawn, n_epochs = drawn_run(cell, "letter")
    part = problem.folds[0].data
    run = cell.estimator.set_params(**cell.parameters(problem, part, drawn, n_epochs)).fit_encoded(part)
    call = eval(cell.call(problem, drawn, n_epochs), dict(NAMES)).fit_encoded(part)
    assert run.structure_ == call.structure_
    np.testing.assert_allclose(run.tables_.cells, call.tables_.cells, rtol=1e-5)

"""Every warning points at the line of the user, whatever lies between it and the place where it arises."""

import ast
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tanlearn import NaiveBayesClassifier, TableEncoder
from tanlearn._warnings import warn
from tanlearn.baselines import AODEClassifier

ROOT = Path(__file__).parents[1]
Y = np.arange(200) % 2
NOISE = np.random.default_rng(0).normal(size=(200, 1))
WORDS = [["a"], ["b"]] * 100
OTHERS = [["x"], ["y"]] * 100


def _known():
    return NaiveBayesClassifier().fit(WORDS, Y)


CASES = {
    "fit": lambda: NaiveBayesClassifier().fit(NOISE, Y),
    "fit_batches": lambda: NaiveBayesClassifier().fit_batches([(NOISE, Y)]),
    "partial_fit": lambda: NaiveBayesClassifier().partial_fit(NOISE, Y, classes=[0, 1]),
    "encoder": lambda: TableEncoder().fit(NOISE, Y),
    "fit_transform": lambda: TableEncoder().fit_transform(NOISE, Y),
    "pipeline": lambda: make_pipeline(FunctionTransformer(), NaiveBayesClassifier()).fit(NOISE, Y),
    "cross_val_score": lambda: cross_val_score(NaiveBayesClassifier(), NOISE, Y, cv=2),
    "predict": lambda: _known().predict(OTHERS),
    "predict_proba": lambda: _known().predict_proba(OTHERS),
    "score": lambda: _known().score(OTHERS, Y),
    "encode": lambda: _known().encoder_.encode(OTHERS),
    "percent": lambda: TableEncoder().fit([[f"{i}%"] for i in range(200)], Y),
    "percent in batches": lambda: NaiveBayesClassifier().fit_batches([([[f"{i}%"] for i in range(200)], Y)]),
    "rounded integers": lambda: TableEncoder().fit(np.arange(200)[:, np.newaxis] + 2**60, Y),
    "light weights": lambda: NaiveBayesClassifier().fit(WORDS, Y, np.full(200, 1e-15)),
    "no super-parents": lambda: AODEClassifier(min_count=1000).fit(WORDS, Y),
}


@pytest.mark.parametrize("case", CASES)
def test_warnings_point_at_this_file(case):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[case]()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_the_line_is_that_of_the_call():
    model = _known()
    with pytest.warns(UserWarning, match="no value in 1 column") as caught:
        model.predict(OTHERS)  # this line
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[caught[0].lineno - 1].endswith("# this line")


def test_without_a_frame_of_the_user_the_outermost_one_is_named():
    found = {"__name__": "tanlearn.inner", "warn": warn}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile("def inner():\n    warn('told', RuntimeWarning)\ninner()", "inner.py", "exec"), found)
    assert [(one.filename, one.category) for one in caught] == [(__file__, RuntimeWarning)]


@pytest.mark.parametrize("folder", ["tanlearn", "baselines"])
def test_the_library_warns_in_one_way_only(folder):
    for path in (ROOT / folder).rglob("*.py"):
        calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        names = [ast.unparse(call) for call in calls]
        assert "warnings.warn" not in names or path.name == "_warnings.py", path

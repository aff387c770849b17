"""The order of calls of fit and predict in CONTRIBUTING is the order in which the functions are called."""

import importlib
import itertools
import re
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from tanlearn import GradientTraining, TANClassifier

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAME = re.compile(r"^\d+\. `([\w.]+)`", flags=re.MULTILINE)
X = np.random.default_rng(0).integers(0, 3, (60, 4)).astype(float)
Y = (X[:, 0] > 0).astype(int)


def listed(after):
    """Return the dotted names that begin the steps of the list after a text."""
    steps = TEXT.partition(after)[2].partition("\n\n")[2].partition("\n\n")[0]
    return NAME.findall(steps)


def called(names, call, monkeypatch):
    """Return the names in the order in which they are first called."""
    seen, codes = [], {}
    for dotted in names:
        package, module, *path, name = dotted.split(".")
        owner = reduce(getattr, path, importlib.import_module(f"tanlearn.{package}.{module}"))
        step = getattr(owner, name)
        if isinstance(step, type):
            step = step.__init__
        if hasattr(step, "py_func"):  # compiled: no frame is created

            def spy(*arguments, kernel=step, dotted=dotted):
                seen.append(dotted)
                return kernel(*arguments)

            monkeypatch.setattr(owner, name, spy)
        else:
            codes[step.__code__] = dotted

    def profile(frame, event, argument):
        if event == "call" and frame.f_code in codes:
            seen.append(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
    return list(dict.fromkeys(seen))


@pytest.mark.parametrize("method", ["fit", "predict"])
def test_functions_are_called_in_the_listed_order(method, monkeypatch):
    model = TANClassifier(n_epochs=1, training=GradientTraining(batch_size=20), random_state=0).fit(X, Y)
    names = listed("`TANClassifier().fit(X, y)` calls" if method == "fit" else "And `predict(X)`:")
    assert len(names) == {"fit": 12, "predict": 6}[method]
    call = (lambda: model.fit(X, Y)) if method == "fit" else (lambda: model.predict(X))
    assert called(names, call, monkeypatch) == names


@pytest.mark.parametrize("after", ["`TANClassifier().fit(X, y)` calls", "And `predict(X)`:"])
def test_every_package_is_entered_once(after):
    packages = [package for package, _ in itertools.groupby(name.split(".")[0] for name in listed(after))]
    entered = [package for package in packages if package != "estimators"]  # which calls the others
    assert len(entered) == len(set(entered)) >= 3

"""The way of the data, as CONTRIBUTING tells it, is the way that calls take."""

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


def told(after):
    """Return the dotted names that begin the steps of the list after a text."""
    steps = TEXT.partition(after)[2].partition("\n\n")[2].partition("\n\n")[0]
    return NAME.findall(steps)


def walked(names, call, monkeypatch):
    """Return the names in the order in which they are first called."""
    seen, codes = [], {}
    for dotted in names:
        room, module, *path, name = dotted.split(".")
        owner = reduce(getattr, path, importlib.import_module(f"tanlearn.{room}.{module}"))
        step = getattr(owner, name)
        if isinstance(step, type):
            step = step.__init__
        if hasattr(step, "py_func"):  # compiled: no frame tells of it

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
def test_contributors_are_told_the_way_that_calls_take(method, monkeypatch):
    model = TANClassifier(n_epochs=1, training=GradientTraining(batch_size=20), random_state=0).fit(X, Y)
    names = told("when `TANClassifier().fit(X, y)`" if method == "fit" else "And `predict(X)`:")
    assert len(names) == {"fit": 12, "predict": 6}[method]
    call = (lambda: model.fit(X, Y)) if method == "fit" else (lambda: model.predict(X))
    assert walked(names, call, monkeypatch) == names


@pytest.mark.parametrize("after", ["when `TANClassifier().fit(X, y)`", "And `predict(X)`:"])
def test_every_room_is_entered_once(after):
    rooms = [room for room, _ in itertools.groupby(name.split(".")[0] for name in told(after))]
    entered = [room for room in rooms if room != "estimators"]  # from where others are entered
    assert len(entered) == len(set(entered)) >= 3

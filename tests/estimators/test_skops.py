"""Fitted estimators as files of skops: their state must be attributes, arrays and containers with plain keys."""

import types

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support.saved_models import ESTIMATORS, FRAME, HOLED, Y, fitted

from tanlearn import (
    BackOffRidge,
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    GradientTraining,
    HierarchicalSmoothing,
    KTreeClassifier,
    MDLPDiscretizer,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    TableEncoder,
    TANClassifier,
    TANSearchCV,
)
from tanlearn.baselines import ChowLiu, GreedySearch, SelectiveKDependenceClassifier

NUMBERS = FRAME[["income", "rooms"]].astype(float)
#: Numbers of all types beside each other, and in one array of one type.
TYPES = pd.DataFrame({name: np.arange(60) % 7 for name in ("int8", "uint16", "int64", "uint64", "float32", "float64")})
TYPES = TYPES.astype({name: name for name in TYPES})
OBJECTS = pd.DataFrame(
    {
        "intervals": pd.cut(np.arange(60), 3),
        "days": pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"] * 30)),
        "large": 10**12 * (np.arange(60) % 3),
    }
)
OTHERS = {
    "forest": (BayesForestClassifier(n_estimators=2, random_state=0), FRAME),
    "forest of counts": (BayesForestClassifier(n_estimators=2, weights=None, random_state=0), FRAME),
    "growing forest": (BayesForestClassifier(n_estimators=2, warm_start=True, random_state=0), FRAME),
    "boosted terms": (BoostedTermsClassifier(max_terms=20, random_state=0), FRAME),
    "default tree": (BayesNetClassifier(), FRAME),
    "back-off": (BayesNetClassifier(structure=ChowLiu(), parameters=HierarchicalSmoothing(m=1.0, sparse=True)), FRAME),
    "ridge": (BayesNetClassifier(structure=ChowLiu(), parameters=BackOffRidge()), FRAME),
    "search": (BayesNetClassifier(structure=GreedySearch()), FRAME),
    "default k-tree": (KTreeClassifier(n_epochs=2, random_state=0), FRAME),
    "validated": (TANClassifier(n_epochs=2, training=GradientTraining(validation_fraction=0.2), random_state=0), FRAME),
    "order-free": (TANClassifier(candidates="order-free", n_epochs=2, random_state=0), FRAME),
    "KDB": (SelectiveKDependenceClassifier(), FRAME),
    "quantiles": (NaiveBayesClassifier(encoder=TableEncoder(discretizer=QuantileDiscretizer())), FRAME),
    "types": (NaiveBayesClassifier(), TYPES),
    "array": (NaiveBayesClassifier(), TYPES.to_numpy(np.float32)),
    "objects": (NaiveBayesClassifier(), OBJECTS),
    "encoder": (TableEncoder(), FRAME),
    "cut points": (MDLPDiscretizer(), NUMBERS),
    "quantile points": (QuantileDiscretizer(), NUMBERS),
    "random search": (TANSearchCV(TANClassifier(n_epochs=1), n_iter=2, cv=2, random_state=0), FRAME),
}


def estimator(name):
    """Return a fitted estimator, and rows."""
    if name in ESTIMATORS:
        return fitted(name), FRAME if name in ("nb", "cyclic", "pseudo-tan") else HOLED
    if name.startswith("partial "):
        model = {"naive Bayes": NaiveBayesClassifier(), "tree": BayesNetClassifier(structure=ChowLiu())}
        return clone(model[name.removeprefix("partial ")]).partial_fit(FRAME, Y, np.unique(Y)), FRAME
    if name == "integers":
        return NaiveBayesClassifier().fit(FRAME, Y).with_bits((3, 2)), FRAME
    unfitted, X = OTHERS[name]
    return clone(unfitted).fit(X, Y), X


NAMES = [*ESTIMATORS, *OTHERS, "partial naive Bayes", "partial tree", "integers"]


def predicted(model, X):
    """Return whatever a model says of rows."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else np.asarray(model.transform(X))


def state_of(value):
    """Return what pickle and skops keep of an object with attributes."""
    state = value.__getstate__()
    return state if isinstance(state, dict) else vars(value)


def problems(value, path, seen):
    """Yield what a file of skops cannot hold, with the way to it."""
    plain = str | bytes | int | float | np.ndarray | np.generic | np.dtype | type | None
    if isinstance(value, plain) or id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, types.FunctionType | types.LambdaType | types.GeneratorType):
        yield f"{path} is a {type(value).__name__}"
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str | int | float | bool):
                yield f"{path} has the key {key!r}"
            yield from problems(item, f"{path}[{key!r}]", seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for i, item in enumerate(value):
            yield from problems(item, f"{path}[{i}]", seen)
    elif hasattr(value, "__dict__"):
        for name, item in state_of(value).items():
            yield from problems(item, f"{path}.{name}", seen)


@pytest.mark.parametrize("name", NAMES)
def test_state_is_plain(name):
    model, X = estimator(name)
    predicted(model, X)  # what is computed once and kept belongs to the state, too
    assert [*problems(model, "model", {})] == []


def test_what_is_not_plain_is_found():
    class Holder:
        def __init__(self):
            self.by_type = [{np.dtype(float): 1}]
            self.function = lambda: None

    assert len([*problems(Holder(), "model", {})]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_skops_holds_it(name):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    if name == "objects":
        pytest.skip("skops does not hold the intervals and time stamps that these categories are")
    model, X = estimator(name)
    content = skops.dumps(model)
    again = skops.loads(content, trusted=skops.get_untrusted_types(data=content))
    np.testing.assert_array_equal(predicted(again, X), predicted(model, X))
    np.testing.assert_array_equal(predicted(model, X), predicted(again, X))

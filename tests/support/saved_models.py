"""Fitted classifiers of all kinds, for tests of what files keep of them."""

import numpy as np
import pandas as pd

from tanlearn import (
    BayesNetClassifier,
    Candidates,
    CandidateSets,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    GradientTraining,
    Hybrid,
    KTreeClassifier,
    MaximumLikelihood,
    NaiveBayesClassifier,
    StochasticGradient,
    Structure,
    TableEncoder,
    TANClassifier,
    TermNetClassifier,
)
from tanlearn.baselines import AnDEClassifier, AODEClassifier, ChowLiu, KDependence

QUICK = {"n_epochs": 2, "training": GradientTraining(batch_size=20), "random_state": 0}
CYCLE = Structure([1, 2, 0, -1, -1, -1], allow_cycles=True)


def mixed_frame(n=60, seed=0):
    """Return a frame of strings, bytes, floats, integers, booleans and declared categories, with values missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Graz", "Linz", "Wels"], n).astype(object),
            "income": y * 3 + rng.normal(size=n),
            "rooms": rng.integers(1, 6, n).astype(np.int16),
            "owner": rng.random(n) < 0.5,
            "grade": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "a", "c"]),
            "key": rng.choice([b"x", b"y"], n).astype(object),
        }
    )
    return frame, np.array(["low", "middle", "high"])[y]


FRAME, Y = mixed_frame()
#: Rows with values missing and never seen.
HOLED = FRAME.head(20).copy()
HOLED["town"] = ["Wien", None, np.nan, "Graz"] * 5
HOLED["grade"] = pd.Categorical(["c", None, "a", "z"] * 5)
HOLED.loc[::3, "income"] = np.nan
HOLED["rooms"] = [np.nan, 99, 2, 1e12] * 5

ESTIMATORS = {
    "nb": NaiveBayesClassifier(parameters=MaximumLikelihood(alpha=0.0)),
    "nb-cl": NaiveBayesClassifier(parameters=ConjugateGradient(loss=ConditionalNLL(), max_iter=3)),
    "nb-tuned": NaiveBayesClassifier(
        parameters=CrossTuned(learner=ConjugateGradient(max_iter=2), param_grid={"alpha": [1.0]}, cv=2)
    ),
    "chow-liu": BayesNetClassifier(structure=ChowLiu(), class_prior=[0.5, 0.25, 0.25], n_jobs=1),
    "two-parents": BayesNetClassifier(structure=KDependence(k=2), class_weight={"low": 2, "high": 0.5}),
    "four-parents": BayesNetClassifier(structure=KDependence(k=4), parameters=MaximumLikelihood(alpha=0.5)),
    "cyclic": BayesNetClassifier(structure=CYCLE, parameters=StochasticGradient(n_epochs=1)),
    "tan": TANClassifier(
        loss=Hybrid(trade_off=5),
        n_epochs=2,
        training=GradientTraining(batch_size=20, temperature=(1, 0.5)),
        candidates=Candidates(ordering=np.arange(6)[::-1]),
        random_state=0,
    ),
    "tan-sets": TANClassifier(candidates=CandidateSets.from_lists([[], [0], [0, 1], [], [2], []]), **QUICK),
    "tan-lists": TANClassifier(
        candidates=[[], (0,), [], [1], [], []],
        n_epochs=2,
        training=GradientTraining(batch_size=20, learning_rate=np.float32(0.1)),
        random_state=0,
    ),
    "pseudo-tan": TANClassifier(candidates="unconstrained", loss=Hybrid(), **QUICK),
    "k-tree": KTreeClassifier(loss=ConditionalNLL(), calibrate=False, **QUICK),
    "term-nb": TermNetClassifier(max_parents=0, class_prior=[0.5, 0.25, 0.25]),
    "term-tan": TermNetClassifier(random_state=0),
    "a2de": AnDEClassifier(subsumption=True, class_prior=[0.5, 0.25, 0.25]),
    "aode": AODEClassifier(encoder=TableEncoder(discrete_features=["town", "rooms", "owner", "grade", "key"])),
}
_FITTED = {}


def fitted(name):
    """Return one of the estimators, fitted once; "small" is naive Bayes of two columns."""
    if name == "small" and name not in _FITTED:
        _FITTED[name] = NaiveBayesClassifier().fit(FRAME[["owner", "income"]], Y)
    if name not in _FITTED:
        _FITTED[name] = ESTIMATORS[name].fit(FRAME, Y)
    return _FITTED[name]


ODD_NAMES = [
    "table 5",
    "Table 5",
    "defaulted",
    "größe",
    "größe ",
    'x;=/"<&>\n}{',
    "network",
    "1st",
    "class_",
    "-",
    "//",
    "",
]
ODD_VALUES = [
    "a b",
    "a_b",
    "<5",
    ">5",
    "5",
    "table",
    "1e5",
    "1.5",
    "",
    " ",
    "größe",
    "-3",
    "-3-4",
    "a,b;c}/*",
    "\0",
    "北京",
]


def odd_model():
    """Return a model of columns and categories with odd names, and its rows."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({name: rng.choice(np.array(ODD_VALUES, dtype=object), 200) for name in ODD_NAMES})
    frame["half"] = rng.choice([0.5, -1.5, 1e-7, 1e22], 200)
    model = BayesNetClassifier(structure=Structure(np.arange(13) - 1), encoder=TableEncoder(discrete_features=True))
    return model.fit(frame, rng.choice(["yes / no; maybe", "<&>"], 200)), frame

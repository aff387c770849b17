"""Sound tables in every container, what models answer about broken ones, and whether a refusal gives a reason."""

import functools
import re
import warnings
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import BaseEstimator, clone

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, Structure
from tanlearn.models.log_joint import log_posterior

N_ROWS = 14


class Chain(BaseEstimator):
    """Learner of a chain of the columns: equal information in tiny tables is decided by names, which arrays lack."""

    needs = "pairs"

    def learn(self, data, rng):
        return Structure(list(range(-1, data.n_features - 1)))

    def from_counts(self, state, rng):
        return Structure(list(range(-1, len(state.n_states) - 1)))


MODELS = {"naive Bayes": NaiveBayesClassifier(), "tree": BayesNetClassifier(structure=Chain())}
#: Expectations besides scores: SAME as of the sound table, and ANYTHING where nobody can tell.
REFUSED, SAME, ANYTHING = "refused", "same", "anything"


def sound(seed):
    """Return columns of plain values, and classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(N_ROWS) % 2)
    columns = {
        "size": np.round(3 * y + rng.normal(size=N_ROWS), 2),
        "rooms": rng.integers(1, 5, N_ROWS),
        "town": rng.choice(["Graz", "Linz"], N_ROWS),
        "owner": rng.random(N_ROWS) < 0.5,
        "height": np.round(rng.normal(size=N_ROWS), 2),
    }
    return {name: values.tolist() for name, values in columns.items()}, y


def object_array(columns):
    """Return cells as they are: NumPy would look into lists."""
    table = np.empty((N_ROWS, len(columns)), dtype=object)
    for j, values in enumerate(columns.values()):
        for row, value in enumerate(values):
            table[row, j] = value
    return table


NULLABLE = {"size": "Float64", "rooms": "Int64", "town": "category", "owner": "boolean", "height": "float32"}
CONTAINERS = {
    "list": lambda columns: list(map(list, zip(*columns.values(), strict=True))),
    "object array": object_array,
    "pandas": pd.DataFrame,
    "nullable pandas": lambda columns: pd.DataFrame(columns).astype(NULLABLE),
    "polars": pl.DataFrame,
    "float array": lambda columns: np.array([columns["size"], columns["height"]]).T,
}
#: Where anything may stand as it is; others make something of it, or nothing.
LOOSE = ("list", "object array", "pandas")


# What is answered ----------------------------------------------------------------------------------------------

#: What a reason speaks of, and what NumPy, pandas, polars and Python tell each other instead.
SUBJECT = re.compile(r"\b(X|y|sample_weight|classes|[cC]olumns?|features?|labels?|data|array)\b")
TELL_TALE = re.compile(
    r"could not broadcast|inhomogeneous|setting an array|ambiguous|not supported between|has no len|unhashable|operands"
    r"|(cannot|could not|can't) convert|out of (bounds|range)|too large to|ufunc|unsupported operand|invalid literal"
    r"|has no attribute|cannot reshape|not aligned|annot cast|real number, not|not iterable|not subscriptable|callable"
    r"|must be str|zero-size|empty sequence|'(NoneType|float|int)' object|buffer|failed to|unexpected|digits|takes \d"
)


def answer(call, *arguments):
    """Return what a call answers, or REFUSED if it raises a reason."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        warnings.filterwarnings("ignore", message="A column-vector y was passed")
        try:
            return call(*arguments)
        except (TypeError, ValueError) as error:
            reason = str(error)
            assert len(reason) > 20
            assert SUBJECT.search(reason)
            assert not TELL_TALE.search(reason), reason
            return REFUSED


def judge(model, X):
    """Return the scores of a fitted model, after a look at them."""
    scores = model.predict_joint_log_proba(X)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(np.exp(log_posterior(scores)).sum(axis=1), 1, rtol=1e-12)
    assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())
    return scores


def fit(model, X, y, sample_weight=None):
    return judge(clone(MODELS[model]).fit(X, y, sample_weight), X)


def begin(model, X, y, sample_weight=None):
    """Begin a stream."""
    streamed = clone(MODELS[model])
    try:
        return judge(streamed.partial_fit(X, y, [0, 1], sample_weight), X)
    except (TypeError, ValueError):
        assert not hasattr(streamed, "classes_")
        raise


@functools.cache
def trained(model, container, seed):
    """Return a model of a sound table, that may be gone on with."""
    columns, y = sound(seed)
    return clone(MODELS[model]).partial_fit(CONTAINERS[container](columns), y, [0, 1])


def proceed(model, container, seed, X, y, sample_weight=None):
    """Go on with a stream, which a chunk that is refused does not change."""
    streamed = copy(trained(model, container, seed))
    before = dict(vars(streamed))
    try:
        streamed.partial_fit(X, y, None, sample_weight)
    except (TypeError, ValueError):
        assert vars(streamed) == before
        raise
    return judge(streamed, CONTAINERS[container](sound(seed)[0]))


def assert_as_expected(found, expected, sound, *what):
    """Compare an answer with the expected one, or with that to a sound table."""
    if isinstance(expected, str) and expected == SAME:
        expected = sound()
    if isinstance(expected, str) or isinstance(found, str):
        assert expected is ANYTHING or found is expected, (found, expected, *what)
    else:
        assert np.array_equal(found, expected), what

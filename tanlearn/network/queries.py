"""What a model of classes and features can do besides classifying: judge, draw, complete and explain samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.elimination import Eliminator
from tanlearn.network.inference import log_joint
from tanlearn.network.limits import most_operations, warn_of_approximations
from tanlearn.network.local_networks import LocalNetworks
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["explain", "log_evidence", "log_odds", "most_probable_completion", "sample"]

#: Features explained at a time that have a missing parent; of 784 features, 13 MB of codes.
_PREFIXES = 2**14


def log_evidence(scores: FloatArray) -> FloatArray:
    """Return log p(observed features): how likely the model holds a sample for, whatever its class.

    Shapes: scores: (n_samples, n_classes); result: (n_samples,).
    """
    evidence: FloatArray = np.logaddexp.reduce(scores, axis=1)
    return evidence


def sample(
    tables: Tables, structure: Structure, n_samples: int, rng: np.random.Generator, *, y: Any = None
) -> tuple[Codes, IntArray]:
    """Draw samples from the model: the class first, then parents before their children.

    Shapes: y: (n_samples,); result codes: (n_features, n_samples); result y: (n_samples,).
    """
    _refuse_cycle(structure, "drawn from")
    layout = tables.layout
    if not tables.is_normalized:
        return _sample_rounded(tables, structure, n_samples, rng, y)
    if y is None:
        classes = _draw(tables.log_prior[:, np.newaxis], np.zeros(n_samples, np.intp), rng)
    else:
        classes = _read_classes(y, n_samples, layout.n_classes)
    codes: Codes = np.empty((len(tables), n_samples), codes_dtype(int(layout.n_states.max())))
    for i in structure.order.tolist():
        codes[i] = _draw(*tables.conditional(i, codes, classes), rng)
    return codes, classes


def _sample_rounded(
    tables: Tables, structure: Structure, n_samples: int, rng: np.random.Generator, y: Any
) -> tuple[Codes, IntArray]:
    """Draw samples from tables that are not normalised: parents first would be another distribution."""
    layout = tables.layout
    dtype = codes_dtype(int(layout.n_states.max()))
    codes: Codes = np.full((len(tables), n_samples), missing_code(dtype), dtype)
    if y is None:
        log_classes = log_joint(tables, structure, codes[:, :1], is_exact=True).T
        classes = _draw(log_classes, np.zeros(n_samples, np.intp), rng)
    else:
        classes = _read_classes(y, n_samples, layout.n_classes)
    eliminator = Eliminator(structure, layout, is_normalized=False)
    for first in range(0, n_samples, _PREFIXES):
        rows = np.arange(first, min(first + _PREFIXES, n_samples))
        drawn = eliminator.sample(codes, rows, tables.cells, rng)
        codes[:, rows] = drawn[:, np.arange(len(rows)), classes[rows]]
    return codes, classes


def _draw(table: FloatArray, column: IntArray, rng: np.random.Generator) -> IntArray:
    """Return for every sample a value from its column of (n_values, n_columns) log-probabilities."""
    bounds = np.exp(table).cumsum(axis=0)
    bounds /= bounds[-1]  # so that the last is 1 and not 1 - 1e-16, and what has probability 0 is never drawn
    uniform = rng.random(len(column))
    value = np.zeros(len(column), np.intp)
    # How many bounds are not above the random number, by bisection: one step a bit of the number of values.
    for bit in reversed(range((len(bounds) - 1).bit_length())):
        probe = np.minimum(value + (1 << bit), len(bounds))
        value = np.where(bounds[probe - 1, column] <= uniform, probe, value)
    return value


def most_probable_completion(
    tables: Tables, structure: Structure, codes: Codes, y: Any = None, *, n_jobs: int | None = None
) -> tuple[Codes, IntArray]:
    """Fill in the missing features of every row, all of them together, with their most probable values.

    The completion and class of a row are exactly the maximum of p(class, features) over both; given the class, of
    p(features | class) over the completions. The most probable values of single features may differ from it, and so
    may the most probable class, with missing features summed out.

    Of equally probable classes the first is taken; then of equally probable values the first, feature by feature in an
    order that depends on the structure, given the values before. Rounding may prefer one of equals. Rows that are
    impossible whatever is filled in get values nevertheless.

    Dechter: Bucket elimination: a unifying framework for reasoning. Artificial Intelligence 113, 1999.

    Shapes: codes: (n_features, n_samples); y: (n_samples,); result codes: (n_features, n_samples); result y:
        (n_samples,).
    """
    incomplete = (codes == missing_code(codes.dtype)).any(axis=0)
    if y is None:
        classes = np.full(codes.shape[1], -1)
        complete = np.ascontiguousarray(codes[:, ~incomplete])
        classes[~incomplete] = log_joint(tables, structure, complete, n_jobs=n_jobs).argmax(axis=1)
    else:
        classes = _read_classes(y, codes.shape[1], tables.layout.n_classes)
    if not incomplete.any():
        return codes.copy(), classes
    _refuse_cycle(structure, "completed by")
    samples = np.flatnonzero(incomplete)
    if isinstance(tables, BackOffTables):
        return LocalNetworks(tables, structure).complete(codes, samples, classes, n_jobs=n_jobs), classes
    eliminator = Eliminator(structure, tables.layout)
    completed = eliminator.complete(codes, samples, tables.cells, classes, n_jobs=n_jobs)
    return completed, classes


def explain(tables: Tables, structure: Structure, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Split the log joint of every row into what its features say for each class.

    Observed features are taken in the order of ``structure.order``, parents before children. A feature contributes the
    log-probability of its value, given the class and the observed features before it::

        contribution_i = log p(x_1, ..., x_i | c) - log p(x_1, ..., x_i-1 | c)

    With observed parents that is the entry of its table, so that in complete rows nothing depends on the order. Missing
    features contribute 0. The sum over the features and the log prior is the log joint.

    Shapes: codes: (n_features, n_samples); result: (n_samples, n_features + 1, n_classes).
    """
    layout, missing = tables.layout, missing_code(codes.dtype)
    n_features, n_samples = codes.shape
    contributions = np.zeros((n_samples, n_features + 1, layout.n_classes))
    contributions[:, -1] = tables.log_prior
    lacks_parent = np.zeros((n_samples, n_features), np.bool_)
    is_hidden = codes == missing
    backs_off: AnyArray = np.zeros(n_samples, np.bool_)
    if isinstance(tables, BackOffTables):
        backs_off = ~LocalNetworks(tables, structure).is_exact(codes, np.arange(n_samples))
        for i in range(n_features):
            contributions[backs_off, i] = tables.of_rows(i, codes[:, backs_off])
        if backs_off.any():
            warn_of_approximations(np.flatnonzero(backs_off).tolist(), most_operations())
    for i in range(n_features):
        family = [i, *layout.parents[i][layout.parents[i] >= 0].tolist()]
        known = ~is_hidden[family].any(axis=0) & ~backs_off
        contributions[known, i] = tables.of_rows(i, codes)[known]
        lacks_parent[:, i] = ~known & ~is_hidden[i] & ~backs_off
    if not tables.is_normalized and is_hidden.any():
        raise ValueError(
            f"row {np.flatnonzero(is_hidden.any(axis=0))[0]} misses a feature, and tables that are not normalised "
            f"(rounded ones, and those of k-trees) explain complete rows only: no feature's share is its own there. "
            f"Impute it, or explain a network that is neither."
        )
    if not lacks_parent.any():
        return contributions
    if not backs_off.any():  # refuses rows that cannot be marginalized exactly, with their numbers
        log_joint(tables, structure, codes, is_exact=True, n_jobs=n_jobs)
    rank = np.argsort(structure.order)
    samples, features = np.nonzero(lacks_parent)
    for start in range(0, len(samples), _PREFIXES):
        rows, last = samples[start : start + _PREFIXES], features[start : start + _PREFIXES]
        seen = np.ascontiguousarray(codes[:, rows])
        seen[rank[:, np.newaxis] > rank[last]] = missing
        after = log_joint(tables, structure, seen, is_exact=True, n_jobs=n_jobs)
        seen[last, np.arange(len(last))] = missing
        before = log_joint(tables, structure, seen, is_exact=True, n_jobs=n_jobs)
        contributions[rows, last] = np.subtract(after, before, out=np.zeros_like(after), where=before > -np.inf)
    return contributions


def log_odds(contributions: FloatArray, y: int, against: int) -> FloatArray:
    """Return what every feature adds to the log-odds of one class against another.

    Shapes: contributions: (n_samples, n_features + 1, n_classes); result: (n_samples, n_features + 1).
    """
    one, other = contributions[..., y], contributions[..., against]
    return np.subtract(one, other, out=np.zeros_like(one), where=(one > -np.inf) | (other > -np.inf))


def _refuse_cycle(structure: Structure, done: str) -> None:
    """Raise if the structure is no network."""
    if not structure.is_acyclic:
        raise ValueError(
            f"samples cannot be {done} a structure with a cycle: it is a scorer, and its scores are no log joint of "
            f"anything. Use a structure without cycles."
        )


def _read_classes(y: Any, n_samples: int, n_classes: int) -> IntArray:
    """Return a copy of class codes after checking them."""
    classes: AnyArray = np.asarray(y)
    if classes.shape != (n_samples,) or classes.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold one class code, an integer, for each of the {n_samples} rows; got shape {classes.shape} of "
            f"dtype {classes.dtype}."
        )
    wrong = np.flatnonzero((classes < 0) | (classes >= n_classes))
    if wrong.size:
        raise ValueError(
            f"y holds {classes[wrong[0]]} in row {wrong[0]}: class codes are 0 to {n_classes - 1}, the columns of the "
            f"tables."
        )
    return classes.astype(np.intp)

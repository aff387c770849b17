"""Queries of a fitted network besides classification: density, sampling, completion and explanation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.models.elimination import Eliminator
from tanlearn.models.inference import log_joint
from tanlearn.models.limits import most_operations, warn_of_approximations
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["explain", "log_evidence", "log_odds", "most_probable_completion", "sample"]

#: Features with a missing parent that are explained per block: 13 MB of codes with 784 features.
_PREFIXES = 2**14


def log_evidence(scores: FloatArray) -> FloatArray:
    """Compute log p(observed features), the log density of each row over all classes.

    It is -inf for rows that are impossible in every class.

    Shapes: scores: (n_samples, n_classes), the log joint; result: (n_samples,).
    """
    evidence: FloatArray = np.logaddexp.reduce(scores, axis=1)
    return evidence


def sample(
    tables: Tables, structure: Structure, n_samples: int, rng: np.random.Generator, *, y: Any = None
) -> tuple[Codes, IntArray]:
    """Draw rows from the model by ancestral sampling: the class first, then parents before their children.

    The classes are drawn from the prior unless ``y`` (n_samples,) contains class codes. A cycle, or an invalid ``y``,
    raises ValueError.

    Shapes: result codes: (n_features, n_samples), without missing values; result y: (n_samples,).
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
    """Draw rows from CPTs that are not normalized.

    Ancestral sampling would draw from another distribution, so the rows are drawn from the posterior of empty rows.
    """
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
    """Draw one value per sample from its column of a table of log probabilities (n_values, n_columns)."""
    bounds = np.exp(table).cumsum(axis=0)
    bounds /= bounds[-1]  # so that the last is exactly 1, and values of probability 0 are never drawn
    uniform = rng.random(len(column))
    value = np.zeros(len(column), np.intp)
    # Count the bounds that are at most the random number, by bisection: one step per bit of the number of values.
    for bit in reversed(range((len(bounds) - 1).bit_length())):
        probe = np.minimum(value + (1 << bit), len(bounds))
        value = np.where(bounds[probe - 1, column] <= uniform, probe, value)
    return value


def most_probable_completion(
    tables: Tables, structure: Structure, codes: Codes, y: Any = None, *, n_jobs: int | None = None
) -> tuple[Codes, IntArray]:
    """Impute the missing values of each row jointly by their most probable completion.

    The completion and class of a row are the exact maximum of p(class, features) over both, or, if classes are given,
    of p(features | class) over the completions. They may differ from the most probable values of single features, and
    from the most probable class with missing features marginalized.

    Ties between classes go to the first class. Ties between values go to the first value, feature by feature in an
    order that depends on the structure, given the values before. Rounding may break ties otherwise. Rows that are
    impossible under every completion are completed too.

    A cycle, a row over the limit of operations (`tanlearn.models.limits`), or an invalid ``y`` (n_samples,) raises
    ValueError. The result is a copy and does not depend on ``n_jobs``.

    Reference: Dechter, Bucket elimination: a unifying framework for reasoning. Artificial Intelligence 113, 1999.

    Shapes: codes and result codes: (n_features, n_samples); result y: (n_samples,).
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
    return tables.complete(structure, codes, samples, classes, n_jobs=n_jobs), classes


def explain(tables: Tables, structure: Structure, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Split the log joint of each row into the contributions of its features, for each class.

    Observed features are added in the order of ``structure.order``, parents before children. The contribution of a
    feature is the log probability of its value, given the class and the observed features before it::

        contribution_i = log p(x_1, ..., x_i | c) - log p(x_1, ..., x_i-1 | c)

    If all parents are observed, that is the CPT entry, so that the order does not matter in complete rows. Missing
    features contribute 0. The sum over the features and the log prior is the log joint. If the features before it are
    impossible in a class, a feature with a missing parent contributes 0, and the sum is -inf already.

    Rows with missing values raise ValueError as in `tanlearn.models.inference.log_joint`, and also if the CPTs are not
    normalized (rounded to a few bits, or of a k-tree). In networks that back off, contributions of rows over the limit
    of operations are approximate, and an InexactMarginalizationWarning names these rows.

    Shapes: codes: (n_features, n_samples); result: (n_samples, n_features + 1, n_classes), the log prior last.
    """
    layout, missing = tables.layout, missing_code(codes.dtype)
    n_features, n_samples = codes.shape
    contributions = np.zeros((n_samples, n_features + 1, layout.n_classes))
    contributions[:, -1] = tables.log_prior
    lacks_parent = np.zeros((n_samples, n_features), np.bool_)
    is_hidden = codes == missing
    backs_off = ~tables.is_exact(structure, codes)
    if backs_off.any():
        for i in range(n_features):
            contributions[backs_off, i] = tables.of_rows(i, codes[:, backs_off])
        warn_of_approximations(np.flatnonzero(backs_off).tolist(), most_operations())
    for i in range(n_features):
        family = [i, *layout.parents[i][layout.parents[i] >= 0].tolist()]
        known = ~is_hidden[family].any(axis=0) & ~backs_off
        contributions[known, i] = tables.of_rows(i, codes)[known]
        lacks_parent[:, i] = ~known & ~is_hidden[i] & ~backs_off
    if not tables.is_normalized and is_hidden.any():
        raise ValueError(
            f"row {np.flatnonzero(is_hidden.any(axis=0))[0]} misses a feature, and CPTs that are not normalized "
            f"(rounded ones, and those of k-trees) explain complete rows only, because contributions of observed "
            f"features would include those of missing ones. Impute the row, or explain a network that is neither."
        )
    if not lacks_parent.any():
        return contributions
    if not backs_off.any():  # raises for rows that cannot be marginalized exactly, with their row numbers
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
    """Compute the contribution of each feature to the log odds of class ``y`` against another class.

    The contributions sum to log p(y | x) - log p(against | x). A value that is impossible in one of the classes
    contributes inf or -inf, one that is impossible in both contributes 0.

    Shapes: contributions: (n_samples, n_features + 1, n_classes), by `explain`; result: (n_samples, n_features + 1).
    """
    one, other = contributions[..., y], contributions[..., against]
    return np.subtract(one, other, out=np.zeros_like(one), where=(one > -np.inf) | (other > -np.inf))


def _refuse_cycle(structure: Structure, done: str) -> None:
    """Raise ValueError if the structure has a cycle."""
    if not structure.is_acyclic:
        raise ValueError(
            f"samples cannot be {done} a structure with a cycle, because its scores are not log joint "
            f"probabilities. Use a structure without cycles."
        )


def _read_classes(y: Any, n_samples: int, n_classes: int) -> IntArray:
    """Validate class codes and return a copy as intp."""
    classes: AnyArray = np.asarray(y)
    if classes.shape != (n_samples,) or classes.dtype.kind not in "iu":
        raise ValueError(
            f"y must contain one integer class code for each of the {n_samples} rows; got shape {classes.shape} of "
            f"dtype {classes.dtype}."
        )
    wrong = np.flatnonzero((classes < 0) | (classes >= n_classes))
    if wrong.size:
        raise ValueError(
            f"y contains {classes[wrong[0]]} in row {wrong[0]}: class codes are 0 to {n_classes - 1}, the columns of "
            f"the CPTs."
        )
    return classes.astype(np.intp)

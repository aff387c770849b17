"""Log joint of rows with unseen values, which never exceeds the log joint with seen values."""

from __future__ import annotations

import math

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.models.elimination import Eliminator
from tanlearn.models.log_joint import check_missing, log_joint
from tanlearn.models.marginalization_limits import most_operations, warn_of_approximations
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["bound_new_values", "log_joint_of_new_values"]

#: Laplace's rule of succession after a single row: (0 + 1) / (1 + 2).
_MOST = -math.log(3.0)


def log_joint_of_new_values(
    tables: Tables,
    structure: Structure,
    codes: Codes,
    is_unseen: AnyArray,
    *,
    n_jobs: int | None = None,
    device: str = "cpu",
) -> FloatArray:
    """Compute log p(class, observed features) of rows with values that the training data did not contain.

    The probability of an unseen value, marked by ``is_unseen``, is the smallest positive probability of any value of
    its feature in its context, or the smallest probability in the whole network if that is smaller. A child of an
    unseen value gets its smallest probability over the values of the parent. The log joint is therefore at most the log
    joint of the row with a seen value. Codes of unseen values are ignored.

    Missing values are treated as by `tanlearn.models.log_joint.log_joint`, and one InexactMarginalizationWarning names
    all rows with approximate scores.

    Shapes: codes, is_unseen: (n_features, n_samples); result: (n_samples, n_classes).
    """
    codes = np.where(is_unseen, 0, codes).astype(codes.dtype)
    is_new, is_incomplete = is_unseen.any(axis=0), (codes == missing_code(codes.dtype)).any(axis=0)
    incomplete = np.flatnonzero(is_incomplete)
    if incomplete.size:
        check_missing(tables, structure, codes, incomplete, device)
    rarest = bound_new_values(tables.least_log_probabilities())
    scores = np.empty((codes.shape[1], tables.layout.n_classes))
    seen = np.flatnonzero(~is_new & ~is_incomplete)
    if seen.size:
        known = np.ascontiguousarray(codes[:, seen])
        scores[seen] = log_joint(tables, structure, known, n_jobs=n_jobs, device=device)
    new = np.flatnonzero(is_new & ~is_incomplete)
    scores[new] = _score_complete(tables, codes[:, new], is_unseen[:, new], rarest)

    # Missing parents of an unseen value are marginalized, so these rows need whole CPTs, which rows with the same
    # unseen features share.
    patterns, kind = np.unique(is_unseen[:, incomplete], axis=1, return_inverse=True)
    has_several = bool((structure.parents[:, 1:] >= 0).any())
    rule = {"is_normalized": tables.is_normalized}
    eliminator = Eliminator(structure, tables.layout, **rule) if has_several and incomplete.size else None
    own_cells = tables.cells
    cells = np.array(own_cells, np.float64) if incomplete.size else own_cells
    changed = Tables(tables.layout, cells, **rule)
    inexact: list[int] = []
    for k in range(patterns.shape[1]):
        rows, features = incomplete[kind.ravel() == k], set(np.flatnonzero(patterns[:, k]).tolist())
        spans = _set_smallest(changed, features, rarest)
        if eliminator is not None:
            arguments = codes, rows, cells
            scores[rows] = eliminator.log_joint(*arguments, is_exact=False, n_jobs=n_jobs, inexact=inexact)
        else:
            known, network = np.ascontiguousarray(codes[:, rows]), changed if features else tables
            scores[rows] = log_joint(network, structure, known, n_jobs=n_jobs, device=device)
        for span in spans:
            cells[span] = own_cells[span]
    if inexact:
        warn_of_approximations(sorted(inexact), most_operations())
    return scores


def bound_new_values(least: FloatArray) -> FloatArray:
    """Return an upper bound on the log probability of an unseen value in each class, at most log(1/3).

    It is the smallest finite log probability of a seen value of any feature. All features are used, because the values
    of a single feature may all be frequent. The rarest value of any feature indicates the probability that smoothing
    leaves for unseen values.

    Shapes: least: (n_features, n_classes), the smallest log probability of each feature; result: (n_classes,).
    """
    rarest: FloatArray = least.min(axis=0, where=np.isfinite(least), initial=_MOST)
    return rarest


def _score_complete(tables: Tables, codes: Codes, is_unseen: AnyArray, rarest: FloatArray) -> FloatArray:
    """Compute the log joint of rows without missing values from the CPT entries of their contexts."""
    scores = np.tile(tables.log_prior.astype(np.float64), (codes.shape[1], 1))
    for i in range(len(tables) if len(scores) else 0):
        family = _family(tables, i)
        table, values = np.asarray(tables[i], np.float64), codes[family]
        if not is_unseen[family].any():
            scores += table[tuple(values)]
            continue
        kinds = (1 << np.arange(len(family))) @ is_unseen[family]  # one bit per axis
        for kind in np.unique(kinds).tolist():
            rows = np.flatnonzero(kinds == kind)
            unseen = [axis for axis in range(len(family)) if kind >> axis & 1]
            known = [axis for axis in range(len(family)) if not kind >> axis & 1]
            if not unseen:
                scores[rows] += table[tuple(values[:, rows])]
                continue
            # Either way, the entries take at most the memory of the CPT.
            entries, context = table.transpose(*known, *unseen, -1), tuple(values[axis, rows] for axis in known)
            is_gathered = len(rows) < math.prod(entries.shape[: len(known)])
            if is_gathered:
                entries = entries[context]
            first = 1 if is_gathered else len(known)
            axes, child = tuple(range(first, first + len(unseen))), first if unseen[0] == 0 else None
            least = _smallest(entries, axes, child, rarest, is_normalized=tables.is_normalized).squeeze(axes)
            scores[rows] += least if is_gathered else least[context]
    return scores


def _set_smallest(tables: Tables, features: set[int], rarest: FloatArray) -> list[slice]:
    """Write the entries of unseen values into code 0, in place. Return the slices of changed cells."""
    spans, offset = [], tables.layout.offset
    for i in range(len(tables) if features else 0):
        family = _family(tables, i)
        axes = tuple(axis for axis, j in enumerate(family) if j in features)
        if axes:
            table = tables[i]  # a view
            least = _smallest(table, axes, 0 if i in features else None, rarest, is_normalized=tables.is_normalized)
            table[tuple(slice(1) if j in features else slice(None) for j in family)] = least
            spans.append(slice(int(offset[i]), int(offset[i + 1])))
    return spans


def _family(tables: Tables, feature: int) -> list[int]:
    """Return a feature and its augmenting parents, in the order of the axes of its CPT."""
    return [feature, *(j for j in tables.layout.parents[feature].tolist() if j >= 0)]


def _smallest(
    table: FloatArray, axes: tuple[int, ...], child: int | None, rarest: FloatArray, *, is_normalized: bool
) -> FloatArray:
    """Return the smallest finite log probabilities over some axes, which keep length one.

    ``child`` is the axis of the values of the feature if its value is unseen, and None otherwise.
    """
    least = table.min(axis=axes, where=np.isfinite(table), initial=np.inf, keepdims=True)
    if child is not None:
        totals = 0.0 if is_normalized else _log_totals(table, child).min(axis=axes, keepdims=True)
        least = np.minimum(least, rarest + totals)
    return np.where(least < np.inf, least, -np.inf)  # where every value is impossible


def _log_totals(table: FloatArray, axis: int = 0) -> FloatArray:
    """Compute log-sum-exp of each distribution over its values, which lie along ``axis``; the axis keeps length one."""
    totals: FloatArray = np.logaddexp.reduce(table, axis=axis, keepdims=True)
    return totals

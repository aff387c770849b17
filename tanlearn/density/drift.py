"""Drift between two data sets: changed distributions of columns, and changed dependences between columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, Codes, FloatArray, missing_code
from tanlearn.density.density import TANDensity
from tanlearn.estimators.estimator_input import encode_new_rows

__all__ = ["drift_report"]


def drift_report(density: TANDensity, reference: Any, new: Any) -> Any:
    """Compare two data sets column by column, and report which columns and dependences changed.

    Parameters
    ----------
    density : TANDensity
        Density that was fitted to the reference data. The comparison uses its encoder and structure. Fit the density
        with ``n_components=1``, so that its tree describes the dependences.
    reference : array-like or frame of shape (n_reference, n_features)
        Rows of the reference data.
    new : array-like or frame of shape (n_new, n_features)
        Rows of the new data, with the same columns.

    Returns
    -------
    pandas.DataFrame
        One line per column, with the most significant change first:

        - ``column`` and ``parent``: names or numbers of the column and of its parent in the structure;
        - ``missing_reference`` and ``missing_new``: fractions of missing values;
        - ``distance``: total variation distance of the frequencies of the values, from 0 to 1;
        - ``log_ratio``: log-likelihood ratio, in nats, of separate frequencies for the two data sets against common
          frequencies;
        - ``p_value``: p-value of the likelihood-ratio test for equal frequencies;
        - ``log_ratio_given_parent`` and ``p_value_given_parent``: the same for the conditional frequencies given the
          parent, which change if the dependence changes. They equal ``log_ratio`` and ``p_value`` if the column has no
          parent.

    Raises
    ------
    NotFittedError
        If ``density`` is not fitted.
    ValueError, TypeError
        If a column is invalid, or the columns differ from those in ``fit``.
    ImportError
        If pandas is not installed.

    Notes
    -----
    If n_tuv is the number of rows of data set t with value v of the column and value u of its parent, the ratio is::

        log_ratio_given_parent = sum_tuv n_tuv log(n_tuv / n_tu)  -  sum_uv n_uv log(n_uv / n_u)

    If nothing changed, twice this ratio has approximately a chi-squared distribution. The sum over the columns is the
    log-likelihood ratio of two trees against one. Rows with a missing value of the column or its parent are not
    counted. All unseen categories of the new data are counted as one additional value. The p-values are not corrected
    for the number of columns.

    Examples
    --------
    >>> from tanlearn import TANDensity, drift_report
    >>> X = [["sun", "hot"], ["rain", "cold"]] * 50
    >>> new = [["sun", "hot"], ["sun", "cold"]] * 50
    >>> density = TANDensity(n_components=1).fit(X)
    >>> drift_report(density, X, new)[["column", "distance", "log_ratio", "log_ratio_given_parent"]].round(2)
       column  distance  log_ratio  log_ratio_given_parent
    0       0       0.5      43.15                   43.15
    1       1       0.0       0.00                   26.16
    """
    import pandas as pd

    check_is_fitted(density)
    tables = [_codes_with_unseen(density, table) for table in (reference, new)]
    missing, n_states = missing_code(tables[0].dtype), density.encoder_.n_states_ + 1
    names = getattr(density, "feature_names_in_", np.arange(len(n_states))).tolist()
    parent = density.structure_.parent.tolist()
    lines = []
    for i, j in enumerate(parent):
        alone = np.stack([_counts(codes[[i]], n_states[[i]], missing) for codes in tables])
        family = alone if j < 0 else np.stack([_counts(c[[i, j]], n_states[[i, j]], missing) for c in tables])
        frequencies = alone[:, :, 0] / np.maximum(alone.sum(axis=1), 1)
        ratio, p_value = _test(alone)
        ratio_given, p_value_given = _test(family)
        lines.append(
            {
                "column": names[i],
                "parent": None if j < 0 else names[j],
                "missing_reference": float((tables[0][i] == missing).mean()),
                "missing_new": float((tables[1][i] == missing).mean()),
                "distance": float(np.abs(frequencies[0] - frequencies[1]).sum() / 2),
                "log_ratio": ratio,
                "p_value": p_value,
                "log_ratio_given_parent": ratio_given,
                "p_value_given_parent": p_value_given,
            }
        )
    order = ["p_value", "log_ratio", "p_value_given_parent"]
    return pd.DataFrame(lines).sort_values(order, ascending=[True, False, True], kind="stable", ignore_index=True)


def _codes_with_unseen(density: TANDensity, table: Any) -> Codes:
    """Encode a table as uint16. The code of an unseen value is the number of values of its column."""
    codes, novelty = encode_new_rows(density, table)
    found: Codes = codes.astype(np.uint16)
    found[codes == missing_code(codes.dtype)] = missing_code(found.dtype)
    for i, n_values in enumerate(density.encoder_.n_states_.tolist()):
        found[i, novelty.is_unseen[i]] = n_values
    return found


def _counts(codes: Codes, n_states: AnyArray, missing: int) -> FloatArray:
    """Count the values of a column for each value of its parent. Return an array (n_values, n_parent_values)."""
    known = codes[:, (codes != missing).all(axis=0)].astype(np.intp)
    shape = (int(n_states[0]), int(n_states[1:].prod()))
    flat = known[0] * shape[1] + (known[1] if len(known) > 1 else 0)
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _test(counts: FloatArray) -> tuple[float, float]:
    """Return the log-likelihood ratio of separate frequencies for two data sets against common ones, and its p-value.

    Shapes: counts: (2, n_values, n_parent_values).
    """
    from scipy.special import chdtrc, xlogy

    both = counts.sum(axis=0)
    separate = xlogy(counts, counts).sum() - xlogy(counts.sum(axis=1), counts.sum(axis=1)).sum()
    common = xlogy(both, both).sum() - xlogy(both.sum(axis=0), both.sum(axis=0)).sum()
    ratio = max(0.0, float(separate - common))
    compared = (counts.sum(axis=1) > 0).all(axis=0)  # parent values with rows in both data sets
    free = int(((both[:, compared] > 0).sum(axis=0) - 1).sum())
    return ratio, float(chdtrc(free, 2 * ratio)) if free else 1.0

"""Groups of classes per row: the likeliest classes by themselves, and all other classes together as a remainder.

The likeliest classes have the highest out-of-fold scores s = b + z, where b is a base and z a weighted sum of gains.
The selection must not depend on the class of the row. If the true class were always selected, the least likely of the
selected classes would often be the true one, and the weights would exploit this.

The score of a remainder R is log sum_{c in R} exp(s_c). It is replaced by its tangent at the scores s, which is linear
in the gains and a lower bound:

    log sum_{c in R} exp(s'_c) >= sum_{c in R} q_c (b_c - log q_c) + sum_{c in R} q_c z'_c,    q = softmax of s over R.
"""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray

__all__ = ["grouped", "likeliest_classes", "own_group", "remainder_shares"]


def likeliest_classes(log_p: FloatArray, n_groups: int) -> IntArray:
    """Return the classes of each row that form a group of their own, the likeliest first.

    If there are at most ``n_groups`` classes, all of them are returned, otherwise ``n_groups - 1``.

    Shapes: log_p: (n_rows, n_classes), log probabilities or scores; result: (n_rows, n_likeliest).
    """
    n_classes = log_p.shape[1]
    n_likeliest = n_classes if n_classes <= n_groups else n_groups - 1
    return np.argsort(-log_p, axis=1, kind="stable")[:, :n_likeliest]


def own_group(y: IntArray, likeliest: IntArray) -> IntArray:
    """Return the group of the class of each row: its position in ``likeliest``, or ``n_likeliest`` for the remainder.

    Shapes: y: (n_rows,); likeliest: (n_rows, n_likeliest); result: (n_rows,).
    """
    is_own = likeliest == y[:, np.newaxis]
    return np.where(is_own.any(axis=1), is_own.argmax(axis=1), likeliest.shape[1])


def remainder_shares(scores: FloatArray, likeliest: IntArray) -> FloatArray:
    """Compute the probability q of each class within the remainder. It is 0 for the likeliest classes.

    Shapes: scores: (n_rows, n_classes); likeliest: (n_rows, n_likeliest); result: (n_rows, n_classes).
    """
    rest = scores.copy()
    np.put_along_axis(rest, likeliest, -np.inf, axis=1)
    rest -= rest.max(axis=1, keepdims=True)
    np.exp(rest, out=rest)
    rest /= rest.sum(axis=1, keepdims=True)
    return rest


def grouped(values: AnyArray, likeliest: IntArray, shares: FloatArray | None) -> AnyArray:
    """Replace values of classes by values of groups. The remainder is the last group.

    The value of the remainder is the sum over classes, weighted by ``shares``. Without a remainder, ``shares`` is None.

    Shapes: values: (..., n_rows, n_classes); likeliest: (n_rows, n_likeliest); shares: (n_rows, n_classes); result:
    (..., n_rows, n_groups).
    """
    classes = likeliest.reshape((1,) * (values.ndim - 2) + likeliest.shape)
    own = np.take_along_axis(values, classes, axis=-1)
    if shares is None:
        return own
    return np.concatenate([own, np.einsum("...rc,rc->...r", values, shares)[..., np.newaxis]], axis=-1)

"""Most probable completion of rows with missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import Codes, IntArray, missing_code
from tanlearn.models.log_joint import log_joint
from tanlearn.models.sampling import read_classes, refuse_cycle
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["most_probable_completion"]


def most_probable_completion(
    tables: Tables, structure: Structure, codes: Codes, y: Any = None, *, n_jobs: int | None = None
) -> tuple[Codes, IntArray]:
    """Impute the missing values of each row jointly by their most probable completion.

    The completion and the class of a row maximize p(class, features) exactly. If classes are given, the completion
    maximizes p(features | class). Results may differ from the most probable value of each single feature, and from the
    most probable class after marginalization of the missing features.

    Ties between classes go to the first class. Ties between values of a feature go to the first value, given the values
    of earlier features in an order that depends on the structure. Rounding may break ties in other ways. Rows that are
    impossible under every completion are completed, too.

    A cycle, a row over the limit of operations (`tanlearn.models.marginalization_limits`), or an invalid ``y``
    (n_samples,) raises ValueError. The result is a copy and does not depend on ``n_jobs``.

    Reference: Dechter, Bucket elimination: a unifying framework for reasoning. Artificial Intelligence 113, 1999.

    Shapes: codes and result codes: (n_features, n_samples); result y: (n_samples,).
    """
    incomplete = (codes == missing_code(codes.dtype)).any(axis=0)
    if y is None:
        classes = np.full(codes.shape[1], -1)
        complete = np.ascontiguousarray(codes[:, ~incomplete])
        classes[~incomplete] = log_joint(tables, structure, complete, n_jobs=n_jobs).argmax(axis=1)
    else:
        classes = read_classes(y, codes.shape[1], tables.layout.n_classes)
    if not incomplete.any():
        return codes.copy(), classes
    refuse_cycle(structure, "completed by")
    samples = np.flatnonzero(incomplete)
    return tables.complete(structure, codes, samples, classes, n_jobs=n_jobs), classes

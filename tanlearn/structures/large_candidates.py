"""Exclusion of candidate parents whose CPTs are too large for the rows, so that most entries would stay empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn._warnings import warn
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.table_layout import TableLayout

__all__ = ["leave_out_large"]

#: A candidate is left out if its CPT has more entries than the first number, and more entries per row than the second
#: number. If two columns have 3,000 values each, fitting their CPTs to 6,000 rows by L-BFGS takes two minutes or more.
MOST_ENTRIES, MOST_PER_ROW = 2**22, 100
#: A pair of parents is also left out if its CPT has more entries per row than this number, even if the CPT is small.
#: For example, with 150 rows and six columns of 50 categories, there are 60 pairs with 2,500 entries per row each.
MOST_PER_ROW_OF_PAIRS = 1_000


def leave_out_large(
    candidates: CandidateSets,
    n_states: IntArray,
    n_classes: int,
    n_samples: int,
    label: Callable[[int], str] | None = None,
) -> CandidateSets:
    """Leave out candidates whose CPTs are too large for the rows.

    Candidates without parents are kept. For pairs of parents, there is a second limit of entries per row, which also
    applies to small CPTs. A pair of parents is left out if one of its single parents is left out. Features with
    required parents that need large CPTs keep all candidates. If candidates are left out, a warning names the largest
    one. ``label`` returns the name of a feature for the warning. Without ``label``, no warning is issued.

    Shapes: n_states: (n_features,).
    """
    layout = candidates.layout(n_states, n_classes)
    sizes = layout.sizes()
    has_parents = (candidates.parents >= 0).any(axis=1)
    is_pair = (candidates.parents >= 0).sum(axis=1) > 1
    is_large = has_parents & (sizes > max(MOST_ENTRIES, MOST_PER_ROW * n_samples))
    is_large |= is_pair & (sizes > MOST_PER_ROW_OF_PAIRS * n_samples)
    selectable = candidates.selectable
    if selectable is not None:  # keep all if every candidate with the required parents has a large CPT
        remains = np.logical_or.reduceat(selectable & ~is_large, candidates.group[:-1])
        is_large &= np.repeat(remains, np.diff(candidates.group))
    if not is_large.any():
        return candidates
    if label is not None:
        _warn(layout, is_large, int(has_parents.sum()), n_samples, label)
    kept = np.append(0, np.cumsum(~is_large))
    return replace(
        candidates,
        parents=candidates.parents[~is_large],
        group=kept[candidates.group],
        selectable=None if selectable is None else selectable[~is_large],
    )


def _warn(
    layout: TableLayout, is_large: AnyArray, n_candidates: int, n_samples: int, label: Callable[[int], str]
) -> None:
    """Issue the warning about the candidates that are left out (``is_large``, a mask of shape (n_tables,))."""
    sizes = layout.sizes()
    t = int(np.where(is_large, sizes, 0).argmax())
    given = " and ".join(label(j) for j in layout.parents[t].tolist() if j >= 0)
    warn(
        f"{int(is_large.sum()):,} of {n_candidates:,} candidate CPTs were left out, because most of their entries "
        f"would be empty. The largest, of {label(int(layout.child[t]))} given {given} "
        f"({' x '.join(map(str, layout.shape(t)))} values and classes), has {int(sizes[t]):,} entries for "
        f"{n_samples:,} rows. Merge rare values of these columns, or pass candidates as lists to keep all of them."
    )

"""Rows with missing values in the training steps of gradient TAN (``train.py``).

Incomplete rows come last in a batch. Their missing values are marginalized over the drawn CPTs in double precision
(``missing_values.py``), and the gradient of each row is distributed right after its score. An incomplete row
contributes to the choice between two candidates only if both families are observed; its contribution is then the
difference of two CPT entries (``add_choice_gradient`` in ``scores.py``, the reference implementation).
"""
# Shapes as in train.py: n samples, d features, C classes, B samples of a batch, D parameters of the prior and of the
# largest CPT of each feature, W threads; j: parent of feature i, -1 for none

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.missing_values import (
    BeliefScratch,
    Forest,
    downward_pass,
    find_incomplete_families,
    observed_starts,
    order_upward,
    upward_pass,
)

_ZERO = np.float32(0.0)


class MissingValues(NamedTuple):
    """Work arrays for rows with missing values, including the CPTs of the drawn structure in double precision."""

    is_incomplete_row: Any  # bool (n,)
    is_normalized: Any  # bool, whether the CPTs that give the scores sum to one
    code: Any  # int, code of a missing value
    n_complete: Any  # intp (1,) number of complete rows of the batch
    is_missing_feature: Any  # bool (d,) whether the feature is missing in a row of the batch
    is_incomplete_family: Any  # bool (d,) whether the feature or its drawn parent is missing in a row of the batch
    batch: Any  # int64 (B,) samples of the batch, complete rows first
    forest: Forest  # drawn structure, with offsets in cells
    beliefs: BeliefScratch
    sample: Any  # uint8 or uint16 (d,) codes of the current row
    cells: Any  # float64 (D,) prior and drawn CPTs, rounded as for the scores
    d_cells: Any  # float64 (D,) their gradient
    score: Any  # float64 (C,)
    d_score: Any  # float64 (C,)
    drawn_start: Any  # int32 (W, B) start of each sample's row in the drawn CPT, or -1
    drawn_choice: Any  # float64 (W, B) choice gradient of the drawn CPT per sample


@kernel
def complete_rows_first(batch, missing_values):  # type: ignore[no-untyped-def]
    """Write the samples of a batch, complete ones first, and the number of complete ones."""
    is_incomplete_row, sorted_batch = missing_values.is_incomplete_row, missing_values.batch
    n_sorted = 0
    for second_pass in range(2):
        if second_pass == 1:
            missing_values.n_complete[0] = n_sorted
        for k in range(batch.shape[0]):
            if is_incomplete_row[batch[k]] == (second_pass == 1):
                sorted_batch[n_sorted] = batch[k]
                n_sorted += 1


@kernel
def find_missing_features(codes, missing_values):  # type: ignore[no-untyped-def]
    """Write which features are missing in a sample of the batch."""
    is_missing_feature = missing_values.is_missing_feature
    for i in range(codes.shape[0]):
        x = codes[i][missing_values.n_complete[0] :]
        is_missing_feature[i] = False
        for k in range(x.shape[0]):
            if x[k] == missing_values.code:
                is_missing_feature[i] = True
                break


@kernel
def incomplete_starts(  # type: ignore[no-untyped-def]
    i, j, n_states, n_classes, codes, missing_values, start_if_missing, start
):
    """Write the row starts of the incomplete samples; ``start_if_missing`` if the feature or its parent is missing."""
    first, missing = missing_values.n_complete[0], missing_values.code
    observed_starts(codes, first, i, j, n_states, 0, n_classes, missing, start_if_missing, start)


@kernel
def _copy_table(table, n_cells, lanes, copy, cells):  # type: ignore[no-untyped-def]
    """Copy a CPT in single precision, followed by zeros, and in double precision."""
    for a in range(n_cells):
        copy[a] = table[a]
        cells[a] = table[a]
    for a in range(n_cells, n_cells + lanes):
        copy[a] = _ZERO


@kernel
def add_family(  # type: ignore[no-untyped-def]
    i, j, table, n_cells, n_drawn, has_choice, n_states, codes, lanes, buffer, incomplete, missing_values
):
    """Add a drawn family to the forest of drawn CPTs, and its CPT, if it is needed, to the cells from ``n_drawn`` on.

    Return the number of added cells. If there are any, the CPT is also in the buffer, followed by zeros that samples
    with a missing value refer to.
    """
    forest, cells = missing_values.forest, missing_values.cells
    is_missing_feature, n_classes = missing_values.is_missing_feature, missing_values.score.shape[0]
    is_incomplete = is_missing_feature[i] or (j >= 0 and is_missing_feature[j])
    forest.parent[i], forest.offset[i] = j, n_drawn
    missing_values.is_incomplete_family[i] = is_incomplete
    n_added = 0
    if is_incomplete or has_choice:
        _copy_table(table, n_cells, lanes, buffer, cells[n_drawn:])
        n_added = n_cells
    if is_incomplete:
        incomplete_starts(i, j, n_states, n_classes, codes, missing_values, n_cells, incomplete)
    return n_added


@kernel
def finish_forest(n_drawn, missing_values):  # type: ignore[no-untyped-def]
    """Order the features of the drawn forest, and discard results that were computed from earlier CPTs."""
    forest, beliefs = missing_values.forest, missing_values.beliefs
    order_upward(forest.parent, forest.upward, beliefs.state)
    beliefs.is_known[:] = False
    missing_values.d_cells[:n_drawn] = 0.0


@kernel
def marginalize(  # type: ignore[no-untyped-def]
    k, codes, forest, cells, is_normalized, missing, beliefs, sample, score, row
):
    """Add the contribution of a sample's missing features to its score; return the number of incomplete families."""
    for i in range(sample.shape[0]):
        sample[i] = codes[i, k]
    n_families = find_incomplete_families(sample, forest, is_normalized, missing, beliefs)
    if n_families > 0:
        for c in range(score.shape[0]):
            score[c] = row[c]
        upward_pass(sample, beliefs.families[:n_families], forest, cells, missing, beliefs, score)
        for c in range(score.shape[0]):
            row[c] = score[c]
    return n_families


@kernel
def marginalize_adjoint(  # type: ignore[no-untyped-def]
    n_families, d_row, forest, cells, missing, beliefs, sample, d_score, d_cells
):
    """Add the gradient with respect to the cells for the sample of the last call of :func:`marginalize`."""
    for c in range(d_score.shape[0]):
        d_score[c] = d_row[c]
    downward_pass(sample, beliefs.families[:n_families], forest, cells, missing, d_score, beliefs, d_cells)


@kernel
def drawn_choice_gradient(  # type: ignore[no-untyped-def]
    i, n_states, n_classes, lanes, d_scores, codes, missing_values, drawn_start, drawn_choice
):
    """Write the choice gradient (eq. 12) of a feature's drawn CPT for each incomplete sample that has its family."""
    n_complete, forest, cells = missing_values.n_complete[0], missing_values.forest, missing_values.cells
    offset = forest.offset[i]
    incomplete_starts(i, forest.parent[i], n_states, n_classes, codes, missing_values, -1, drawn_start)
    for k in range(drawn_start.shape[0]):
        drawn_choice[k] = 0.0
        if drawn_start[k] >= 0:
            first = (n_complete + k) * lanes
            for c in range(n_classes):
                drawn_choice[k] += d_scores[first + c] * cells[offset + drawn_start[k] + c]


@kernel
def marginal_gradient(i, n_cells, missing_values, d_table):  # type: ignore[no-untyped-def]
    """Write the gradient of a feature's drawn CPT from samples in which its family is incomplete."""
    offset, d_cells = missing_values.forest.offset[i], missing_values.d_cells
    for a in range(n_cells):
        d_table[a] = d_cells[offset + a]

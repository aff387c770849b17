"""Rows with missing values in a training step: every kernel against enumeration, or against plain NumPy."""

import numpy as np
import pytest
from oracles import elimination as naive
from support.small_networks import MISSING, N_CLASSES, N_STATES, TREE, normalized_cells, offsets, patterns

from tanlearn.kernels import train_missing_values as kernels
from tanlearn.training.missing_value_scratch import allocate_missing_values

PARENT = [row[0] for row in TREE]
LANES = 4
BATCH = np.array([5, 0, 31, 9, 0, 16, 2])  # sample 0 is complete


@pytest.fixture(autouse=True)
def _logarithm_of_zero():
    """Without the compiler NumPy warns of it."""
    with np.errstate(divide="ignore"):
        yield


class Step:
    """A batch with complete rows first, the drawn tree, and its CPTs in the order of the features."""

    def __init__(self, *, has_choice=True, seed=0):
        rng = np.random.default_rng(seed)
        X, codes = patterns(rng)
        self.cells = normalized_cells(TREE, rng)
        shape = 1, len(BATCH)
        self.values = allocate_missing_values(codes, N_STATES, N_CLASSES, len(self.cells), shape, is_normalized=True)
        kernels.complete_rows_first(BATCH, self.values)
        self.n_complete = int(self.values.n_complete[0])
        self.X, self.codes = X[self.values.batch], np.ascontiguousarray(codes[:, self.values.batch])
        kernels.find_missing_features(self.codes, self.values)
        self.values.cells[:N_CLASSES] = self.cells[:N_CLASSES]
        self.added, self.buffers, self.starts, self.n_drawn = [], [], [], N_CLASSES
        offset = offsets(TREE)
        for i, j in enumerate(PARENT):
            table = self.cells[offset[i] : offset[i + 1]].astype(np.float32)
            buffer = np.full(len(table) + LANES, 7, np.float32)
            start = np.full(len(BATCH) - self.n_complete, -7, np.int32)
            arguments = table, len(table), self.n_drawn, has_choice, N_STATES, self.codes, LANES, buffer, start
            self.added.append(kernels.add_family(i, j, *arguments, self.values))
            self.buffers.append(buffer)
            self.starts.append(start)
            self.n_drawn += self.added[-1]

    def start(self, i, if_missing):
        """Return the row of the CPT of feature i, times the classes, of each incomplete sample."""
        found = []
        for x in self.X[self.n_complete :].tolist():
            j = PARENT[i]
            row = x[i] if j < 0 else x[i] * int(N_STATES[j]) + x[j]
            found.append(if_missing if x[i] < 0 or (j >= 0 and x[j] < 0) else row * N_CLASSES)
        return found


def has_observed_descendant(x, i):
    """Return whether a feature, or one below it in the tree, is observed."""
    return bool(x[i] >= 0) or any(has_observed_descendant(x, child) for child in range(5) if PARENT[child] == i)


def test_complete_rows_come_first_in_the_order_of_the_batch():
    step = Step()
    assert step.n_complete == 2
    assert step.values.batch.tolist() == [0, 0, 5, 31, 9, 16, 2]


def test_features_that_any_row_misses_are_found():
    step = Step()
    expected = (step.X < 0).any(axis=0)
    assert step.values.is_missing_feature.tolist() == expected.tolist()
    step.codes[step.codes == MISSING] = 0
    kernels.find_missing_features(step.codes, step.values)
    assert not step.values.is_missing_feature.any()


@pytest.mark.parametrize("i", range(5))
def test_incomplete_rows_start_where_their_values_are(i):
    step = Step()
    start = np.empty(len(BATCH) - step.n_complete, np.int32)
    kernels.incomplete_starts(i, PARENT[i], N_STATES, N_CLASSES, step.codes, step.values, -5, start)
    assert start.tolist() == step.start(i, -5)


@pytest.mark.parametrize("has_choice", [True, False])
def test_families_are_added_where_values_are_missing_or_a_choice_needs_them(has_choice):
    step = Step(has_choice=has_choice)
    values, offset, n_drawn = step.values, offsets(TREE), N_CLASSES
    assert values.forest.parent.tolist() == PARENT
    for i, j in enumerate(PARENT):
        is_incomplete = bool((step.X[:, i] < 0).any() or (j >= 0 and (step.X[:, j] < 0).any()))
        assert values.is_incomplete_family[i] == is_incomplete
        assert values.forest.offset[i] == n_drawn
        n_cells = offset[i + 1] - offset[i]
        assert step.added[i] == (n_cells if is_incomplete or has_choice else 0)
        if step.added[i]:
            table = step.cells[offset[i] : offset[i + 1]].astype(np.float32)
            np.testing.assert_array_equal(step.buffers[i], [*table, *[0] * LANES])
            np.testing.assert_array_equal(values.cells[n_drawn : n_drawn + n_cells], table)
        if is_incomplete:
            assert step.starts[i].tolist() == step.start(i, n_cells)  # the zeros behind the CPT
        n_drawn += step.added[i]
    assert step.n_drawn == n_drawn


def test_the_finished_forest_is_ordered_and_has_no_beliefs_of_earlier_tables():
    step = Step()
    values = step.values
    values.beliefs.is_known[:] = True
    values.d_cells[:] = 3.0
    kernels.finish_forest(step.n_drawn - 1, values)
    place = np.argsort(values.forest.upward)
    assert all(j < 0 or place[i] < place[j] for i, j in enumerate(PARENT))
    assert not values.beliefs.is_known.any()
    assert values.d_cells.tolist() == [0.0] * (step.n_drawn - 1) + [3.0] * (len(values.d_cells) - step.n_drawn + 1)


def test_marginalized_scores_and_their_gradient_are_those_of_enumeration():
    step = Step()
    values = step.values
    kernels.finish_forest(step.n_drawn, values)
    cells = values.cells[: step.n_drawn].copy()  # single precision, as in the CPTs
    offset = offsets(TREE)
    rng = np.random.default_rng(1)
    for k in range(step.n_complete, len(BATCH)):
        x = step.X[k]
        row = np.array(cells[:N_CLASSES])
        for i in range(5):
            start = step.start(i, -1)[k - step.n_complete]
            if start >= 0:
                row += cells[offset[i] + start : offset[i] + start + N_CLASSES]
        arguments = values.forest, values.cells, values.is_normalized, MISSING, values.beliefs, values.sample
        n_families = kernels.marginalize(k, step.codes, *arguments, values.score, row)
        expected = naive.log_joint(x, cells, TREE, N_STATES, N_CLASSES)
        np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-6)
        values.d_cells[:] = 0.0
        d_row = rng.normal(size=N_CLASSES)
        arguments = values.forest, values.cells, MISSING, values.beliefs, values.sample, values.d_score
        if n_families > 0:
            kernels.marginalize_adjoint(n_families, d_row, *arguments, values.d_cells)
        counts = naive.expected_counts(x, d_row, cells, TREE, N_STATES, N_CLASSES)
        for i in range(5):
            own = slice(offset[i], offset[i + 1])
            is_observed = step.start(i, -1)[k - step.n_complete] >= 0
            d_table = np.full(offset[i + 1] - offset[i], 9.0)
            kernels.marginal_gradient(i, len(d_table), values, d_table)
            # Normalized CPTs without an observed feature below contribute nothing.
            is_used = not is_observed and has_observed_descendant(x, i)
            np.testing.assert_allclose(d_table, counts[own] if is_used else 0.0, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("i", range(5))
def test_the_choice_gradient_is_that_of_the_entry_of_each_row(i):
    step = Step()
    kernels.finish_forest(step.n_drawn, step.values)
    n = len(BATCH) - step.n_complete
    d_scores = np.random.default_rng(2).normal(size=(len(BATCH), LANES)).astype(np.float32)
    cells = np.where(np.isfinite(step.values.cells), step.values.cells, -9.0)
    step.values.cells[:] = cells
    start, choice = np.empty(n, np.int32), np.empty(n)
    arguments = N_STATES, N_CLASSES, LANES, d_scores.ravel(), step.codes, step.values, start, choice
    kernels.drawn_choice_gradient(i, *arguments)
    first = offsets(TREE)[i]
    for k, at in enumerate(step.start(i, -1)):
        expected = 0.0 if at < 0 else d_scores[step.n_complete + k, :N_CLASSES] @ cells[first + at : first + at + 2]
        assert choice[k] == pytest.approx(expected, rel=1e-6)

"""Incomplete rows that are planned once: against elimination row by row."""

import numpy as np
import pytest

from tanlearn import EncodedData, MaximumLikelihood, Structure
from tanlearn.models import incomplete_rows
from tanlearn.models.elimination import Eliminator
from tanlearn.models.incomplete_rows import IncompleteRows
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.parametrizations import Normalized


def random_forest(d, rng):
    """Return parents among the features of a random order; some have none."""
    order = rng.permutation(d)
    parent = np.full(d, -1)
    for k in range(1, d):
        parent[order[k]] = order[rng.integers(k)] if rng.random() < 0.85 else -1
    return Structure(parent)


def random_problem(structure, n_states, n_samples, share, rng, scale=3.0, n_classes=3):
    """Return a layout, codes with such a share of gaps, normalised cells, and a gradient of scores."""
    n_states = np.asarray(n_states)
    layout = TableLayout.of_parents(structure.parents, n_states, n_classes)
    codes = rng.integers(0, n_states, (n_samples, len(n_states)))
    codes[rng.random(codes.shape) < share] = -1
    data = EncodedData.from_codes(codes, rng.integers(0, n_classes, n_samples), n_states=n_states, n_classes=n_classes)
    cells = Normalized(layout).forward(scale * rng.normal(size=layout.n_cells))
    return layout, data.codes, cells, rng.normal(size=(n_samples, n_classes))


def check(structure, layout, codes, cells, d_scores):
    """Compare with the eliminator: scores, and gradients beside the sum of absolute values."""
    rows = IncompleteRows(structure, layout, codes)
    eliminator, samples = Eliminator(structure, layout), np.arange(codes.shape[1])
    expected = eliminator.log_joint(codes, samples, cells)
    np.testing.assert_allclose(rows.log_joint(cells), expected, rtol=1e-12, atol=1e-12)
    found = rows.log_joint_adjoint(cells, d_scores)
    difference = np.abs(found - eliminator.log_joint_adjoint(codes, samples, cells, d_scores))
    assert (difference <= 1e-12 * (1 + eliminator.log_joint_adjoint(codes, samples, cells, np.abs(d_scores)))).all()
    return rows


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_scores_and_gradients_are_those_of_elimination(seed, share):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    structure = random_forest(d, rng)
    check(structure, *random_problem(structure, rng.integers(1, 5, d), 300, share, rng))


def test_two_byte_codes():
    rng = np.random.default_rng(0)
    structure = Structure([-1, 0, 1])
    layout, codes, *rest = random_problem(structure, [300, 2, 400], 200, 0.3, rng)
    assert codes.dtype == np.uint16
    check(structure, layout, codes, *rest)


@pytest.mark.parametrize("scale", [1.0, 40.0, 300.0])
def test_a_hub_whose_children_would_underflow(scale):
    """Two hundred children, with probabilities down to e^-1000; keys of their values do not fit into an integer."""
    rng = np.random.default_rng(1)
    structure = Structure([1, -1, *[0] * 200])
    problem = random_problem(structure, [3, 2, *[2] * 200], 12, 0.1, rng, scale, 2)
    problem[1][0] = 255
    assert check(structure, *problem).n_events == 12


def test_impossible_values():
    rng = np.random.default_rng(2)
    structure = Structure([-1, 0, 1, 1])
    layout, codes, cells, d_scores = random_problem(structure, [2, 3, 2, 2], 400, 0.4, rng)
    counts = np.where(rng.random(layout.n_cells) < 0.4, 0.0, np.exp(cells))
    counts[:3] = 1.0
    cells = MaximumLikelihood(alpha=0.0).from_counts(layout, counts).cells
    assert np.isneginf(cells).any()
    scores = IncompleteRows(structure, layout, codes).log_joint(cells)
    assert np.isneginf(scores).any()
    assert np.isfinite(scores).any()
    check(structure, layout, codes, cells, d_scores)


def test_rows_share_what_they_miss():
    """0 -> 1 -> 2, 3 apart: feature 1 between two zeros, or below a 0 and above a 1; feature 3 is barren."""
    table = [[0, -1, 0, 0], [0, -1, 0, 1], [0, -1, 0, -1], [0, -1, 1, 0], [0, 1, 1, -1], [0, 0, -1, 0]]
    data = EncodedData.from_codes(table, [0, 1, 0, 1, 0, 1], n_states=[2, 2, 2, 2])
    structure = Structure([-1, 0, 1, -1])
    layout = TableLayout.of_parents(structure.parents, data.n_states, 2)
    assert IncompleteRows(structure, layout, data.codes).n_events == 2


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_results_do_not_depend_on_the_threads(n_jobs, monkeypatch):
    monkeypatch.setattr(incomplete_rows, "_BLOCK", 16)
    rng = np.random.default_rng(3)
    structure = random_forest(8, rng)
    layout, codes, cells, d_scores = random_problem(structure, [3] * 8, 500, 0.4, rng)
    rows = IncompleteRows(structure, layout, codes)
    assert rows.n_events > 16 * 8
    assert np.array_equal(rows.log_joint(cells), rows.log_joint(cells, n_jobs=n_jobs))
    assert np.array_equal(
        rows.log_joint_adjoint(cells, d_scores), rows.log_joint_adjoint(cells, d_scores, n_jobs=n_jobs)
    )


def test_two_parents_are_eliminated_row_by_row():
    rng = np.random.default_rng(4)
    structure = Structure([[-1, -1], [0, -1], [0, 1], [1, 2]])
    rows = check(structure, *random_problem(structure, [2, 3, 2, 2], 100, 0.4, rng))
    assert rows.n_events == 0


def test_cycles_are_refused():
    structure = Structure([1, 0], allow_cycles=True)
    layout = TableLayout.of_parents(structure.parents, np.array([2, 2]), 2)
    with pytest.raises(ValueError, match="cannot be marginalized in a structure with a cycle"):
        IncompleteRows(structure, layout, np.array([[255], [0]], np.uint8))

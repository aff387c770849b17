"""The objective of a fixed structure: gradient, weights, closed-form optimum."""

import numpy as np
import pytest
from oracles import elimination as naive_elimination
from threadpoolctl import threadpool_limits

from tanlearn import ConditionalNLL, EncodedData, HingeMargin, Hybrid, JointNLL, Margin, MaximumLikelihood, Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.objectives import Objective

LOSSES = [JointNLL(), ConditionalNLL(), HingeMargin(gamma=2), Margin(scale=0.5), Hybrid(trade_off=3, gamma=2)]


def problem(parents, weight=None, n=50, missing=0.0):
    rng = np.random.default_rng(0)
    X = np.stack([rng.integers(0, k, n) for k in (2, 3, 4)], axis=1)
    y = rng.integers(0, 3, n)
    X[rng.random(X.shape) < missing] = -1
    data = EncodedData.from_codes(X, y, n_states=[2, 3, 4], sample_weight=weight)
    return TableLayout.of_parents(Structure(parents).parents, data.n_states, data.n_classes), data


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("parents", [[-1, -1, -1], [-1, 0, 1], [[-1, -1], [0, -1], [0, 1]]])
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_gradient_equals_finite_differences(loss, parents, missing):
    layout, data = problem(parents, missing=missing)
    objective = Objective(layout, data, loss)
    rng = np.random.default_rng(1)
    rho, direction = rng.normal(size=(2, layout.n_cells))
    _, gradient = objective(rho)
    slope = (objective(rho + 1e-6 * direction)[0] - objective(rho - 1e-6 * direction)[0]) / 2e-6
    assert gradient @ direction == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_weight_two_is_the_row_twice(loss, missing):
    weight = np.random.default_rng(2).integers(1, 4, 50)
    layout, data = problem([-1, 0, 1], weight, missing=missing)
    _, plain = problem([-1, 0, 1], missing=missing)
    repeated = plain.take(np.repeat(np.arange(50), weight))
    rho = np.random.default_rng(3).normal(size=layout.n_cells)
    value, gradient = Objective(layout, data, loss)(rho)
    value_repeated, gradient_repeated = Objective(layout, repeated, loss)(rho)
    assert value == pytest.approx(value_repeated, rel=1e-12)
    np.testing.assert_allclose(gradient, gradient_repeated, atol=1e-13)


def test_joint_likelihood_is_flat_at_the_frequencies():
    layout, data = problem([-1, 0, 1])
    rng = np.random.default_rng(0)
    tables = MaximumLikelihood(alpha=0.01).fit(Structure([-1, 0, 1]), data, rng)
    value, gradient = Objective(layout, data, JointNLL())(tables.cells)
    assert np.abs(gradient).max() < 1e-3
    assert value < Objective(layout, data, JointNLL())(tables.cells + rng.normal(scale=0.1, size=layout.n_cells))[0]


def test_missing_values_are_summed_out():
    """The loss is that of scores by enumeration."""
    layout, data = problem([[-1, -1], [0, -1], [0, 1]], missing=0.3)
    rho = np.random.default_rng(4).normal(size=layout.n_cells)
    objective = Objective(layout, data, ConditionalNLL())
    cells, samples = objective.theta(rho), np.where(data.codes == 255, -1, data.codes.astype(int)).T
    scores = [naive_elimination.log_joint(x, cells, layout.parents.tolist(), layout.n_states, 3) for x in samples]
    expected = np.mean(np.logaddexp.reduce(scores, axis=1) - np.array(scores)[np.arange(50), data.y])
    assert objective(rho)[0] == pytest.approx(expected, rel=1e-12)


def test_missing_values_of_a_cycle_are_refused():
    _, data = problem([-1, 0, 1], missing=0.3)
    layout = TableLayout.of_parents(np.array([[1, -1], [0, -1], [-1, -1]]), data.n_states, data.n_classes)
    with pytest.raises(ValueError, match="cannot be marginalized in a structure with a cycle"):
        Objective(layout, data, JointNLL())


def test_value_does_not_depend_on_the_threads_of_blas():
    """A product of vectors of more than 10,000 numbers would, in its last bit, and so would all steps of a search."""
    layout, data = problem([-1, 0, 1], n=30_000)
    objective = Objective(layout, data, ConditionalNLL())
    rho = np.random.default_rng(1).normal(size=(20, layout.n_cells))
    values = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            values.append([objective(point)[0] for point in rho])
    assert values[0] == values[1]

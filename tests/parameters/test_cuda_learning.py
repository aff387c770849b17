"""Learners on a device: counts to the last bit those of the CPU, objectives to rounding, and errors for the rest."""

from dataclasses import replace

import numpy as np
import pytest

from tanlearn import (
    LBFGS,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    EncodedData,
    ExpectationMaximization,
    ExtendedBaumWelch,
    HingeMargin,
    Hybrid,
    HybridCV,
    JointNLL,
    Margin,
    MaximumLikelihood,
    PairCounts,
    Structure,
)
from tanlearn.baselines import ChowLiu, GreedySearch, KDependence, RandomTree
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.parameters.parameter_learner import check_learner_device
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.objectives import Objective

LOSSES = [JointNLL(), ConditionalNLL(), HingeMargin(gamma=2), Margin(scale=0.5), Hybrid(trade_off=3, gamma=2)]
STRUCTURES = [[-1, -1, -1, -1], [-1, 0, 1, 0], [[-1, -1], [0, -1], [0, 1], [2, 0]]]


def random_data(seed, weight=None, n=60, n_states=(2, 3, 4, 2), missing=0.0):
    """Three classes; features that resemble the class and each other, with values that some rows miss."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.stack([np.where(rng.random(n) < 0.5, y, rng.integers(0, k, n)) % k for k in n_states], axis=1)
    X[rng.random(X.shape) < missing] = -1
    weights = {None: None, "integer": rng.integers(0, 4, n), "real": rng.uniform(0.1, 2, n)}[weight]
    return EncodedData.from_codes(X, y, n_states=n_states, sample_weight=weights)


def both(data):
    return data, replace(data, device="cuda")


def layout_of(structure, data):
    return TableLayout.of_parents(Structure(structure).parents, data.n_states, data.n_classes)


def test_rows_taken_stay_on_the_device():
    assert replace(random_data(0), device="cuda").take([1, 2]).device == "cuda"


@pytest.mark.parametrize("weight", [None, "integer", "real"])
@pytest.mark.parametrize("n_states", [(2, 3, 4, 2), (2, 300, 4, 2)])  # codes of 8 and of 16 bits
def test_states_are_equal(backend, weight, n_states):
    first, second = (random_data(seed, weight, n_states=n_states, missing=0.2) for seed in (0, 1))
    states = []
    for device in ("cpu", "cuda"):
        state = PairCounts(first.n_states, first.n_classes)
        for data in (first, second):
            state.update(replace(data, device=device))
        states.append(state)
    assert states[0].to_bytes() == states[1].to_bytes()


@pytest.mark.parametrize("weight", [None, "integer", "real"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_frequencies_are_equal(backend, weight, structure):
    data = random_data(2, weight, missing=0.2)
    here, there = (MaximumLikelihood().fit(Structure(structure), one, None) for one in both(data))
    np.testing.assert_array_equal(here.cells, there.cells)


@pytest.mark.parametrize("learner", [ChowLiu(), ChowLiu(penalty="bic"), KDependence(k=2), RandomTree()])
@pytest.mark.parametrize("weight", [None, "real"])
def test_structures_are_equal(backend, learner, weight):
    data = random_data(3, weight, missing=0.2)
    here, there = (learner.learn(one, np.random.default_rng(0)) for one in both(data))
    assert here == there


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("weight", [None, "real"])
def test_objectives_agree(backend, monkeypatch, loss, structure, weight):
    monkeypatch.setattr(cuda_kernels, "_CHUNK_ROWS", 20)  # the gradient is added up in three chunks
    here, there = both(random_data(4, weight))
    layout = layout_of(structure, here)
    rho = np.random.default_rng(5).normal(size=layout.n_cells)
    value, gradient = Objective(layout, here, loss)(rho)
    objective = Objective(layout, there, loss)
    found, cuda_gradient = objective(rho)
    # Sums of 60 rows and 5 numbers, and an eta of 10 that magnifies what the scores differ by.
    tolerance = 2000 * np.finfo(np.float64).eps
    assert found == pytest.approx(value, rel=tolerance)
    np.testing.assert_allclose(cuda_gradient, gradient, rtol=0, atol=tolerance * np.abs(gradient).max())
    np.testing.assert_allclose(objective.theta(rho), Objective(layout, here, loss).theta(rho), rtol=tolerance)
    again, same_gradient = objective(rho)
    assert again == found
    assert same_gradient.tobytes() == cuda_gradient.tobytes()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_gradient_on_a_device_equals_finite_differences(backend, loss):
    _, data = both(random_data(6, "integer"))
    layout = layout_of(STRUCTURES[2], data)
    objective = Objective(layout, data, loss)
    rho, direction = np.random.default_rng(7).normal(size=(2, layout.n_cells))
    _, gradient = objective(rho)
    slope = (objective(rho + 1e-6 * direction)[0] - objective(rho - 1e-6 * direction)[0]) / 2e-6
    assert gradient @ direction == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    "learner",
    [
        ConjugateGradient(max_iter=4),
        LBFGS(loss=ConditionalNLL(), max_iter=4),
        ExtendedBaumWelch(max_iter=4),
        CrossTuned(learner=ConjugateGradient(loss=Margin(), max_iter=2), param_grid={"loss__scale": [0.05, 0.5]}, cv=2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_batch_learners_go_the_same_way(backend, learner):
    here, there = (learner.fit(Structure([-1, 0, 1, 0]), one, np.random.default_rng(0)) for one in both(random_data(8)))
    np.testing.assert_allclose(there.cells, here.cells, rtol=1e-6)


class Own(Margin):
    """A loss of the user's own, although it begins as a built-in one."""

    def value_and_gradient(self, scores, y):
        return super().value_and_gradient(scores, y)


def test_a_loss_of_the_users_own_is_refused(backend):
    _, data = both(random_data(9))
    with pytest.raises(ValueError, match=r"only built-in losses, got Own\(\)\. Use a built-in loss, or device='cpu'"):
        ConjugateGradient(loss=Own()).fit(Structure([-1] * 4), data, np.random.default_rng(0))


def test_a_loss_needs_two_classes_on_a_device_too(backend):
    data = replace(EncodedData.from_codes([[0], [1]], [0, 0]), device="cuda")
    with pytest.raises(ValueError, match="at least two classes"):
        ConjugateGradient().fit(Structure([-1]), data, np.random.default_rng(0))


def test_missing_values_are_refused_with_their_place(backend):
    _, data = both(random_data(10, missing=0.2))
    with pytest.raises(
        ValueError, match=r"device='cuda', unlike device='cpu', learns from complete rows only.*feature"
    ):
        LBFGS().fit(Structure([-1] * 4), data, np.random.default_rng(0))


@pytest.mark.parametrize(
    "learner", [ChowLiu(), MaximumLikelihood(), LBFGS(), ExtendedBaumWelch(), CrossTuned(), HybridCV()]
)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_learners_of_counts_and_batches_work_on_both_devices(learner, device):
    check_learner_device(learner, device)


@pytest.mark.parametrize("learner", [GreedySearch(), ExpectationMaximization()])
def test_learners_without_kernels_are_for_the_cpu(learner):
    check_learner_device(learner, "cpu")
    with pytest.raises(
        ValueError, match=rf"{type(learner).__name__}\(\) supports only device='cpu', got device='cuda'"
    ):
        check_learner_device(learner, "cuda")

"""Drawing structures, and the straight-through gradient."""

import itertools

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn.kernels import trees

GROUP = np.array([0, 1, 3, 7])


def arborescence(weight):
    """Run the kernel on weight[i][j], the last column being "no parent"."""
    d = len(weight)
    size = 2 * d + 1
    square = np.full((size, size), -np.inf)
    square[:d, : d + 1] = weight
    square[np.arange(d), np.arange(d)] = -np.inf
    parent = np.empty(d, np.intp)
    ends = np.empty((2, size, size), np.intp)
    trees.maximum_arborescence(d, square, ends[0], ends[1], np.empty((5, size), np.intp), parent)
    return parent.tolist()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(12))
def test_arborescence_is_the_best_of_all_forests(d, seed):
    """A cheap root makes nested cycles, a dear one forces long trees."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(d, d + 1))
    weight[:, d] -= 4 * (seed % 3)
    weight[rng.random((d, d + 1)) < 0.2 * (seed % 2)] = -np.inf
    weight[:, d] = np.where(np.isinf(weight[:, d]), -9.0, weight[:, d])
    assert arborescence(weight) == list(naive.best_arborescence(weight.tolist()))


def test_arborescence_breaks_nested_cycles():
    """0 <-> 1 is a cycle; contracted, it forms one with 2, and that one with 3."""
    weight = np.full((4, 5), -np.inf)
    weight[0, 1], weight[1, 0] = 10.0, 10.0
    weight[0, 2], weight[2, 1] = 8.0, 8.0
    weight[2, 3], weight[3, 0] = 6.0, 6.0
    weight[:, 4] = [0.0, 0.5, -3.0, -5.0]
    assert arborescence(weight) == list(naive.best_arborescence(weight.tolist()))


def test_drawn_tables_form_the_arborescence():
    group = np.array([0, 2, 4])
    table_parent = np.array([-1, 1, -1, 0])
    perturbed = np.array([-1.0, 5.0, -3.0, 4.0])  # each wants the other; 1 pays more for having no parent
    selected = np.empty(2, np.intp)
    ends = np.empty((2, 5, 5), np.intp)
    trees.draw_arborescence(
        perturbed, group, table_parent, np.empty((5, 5)), ends[0], ends[1], np.empty((5, 5), np.intp), selected
    )
    assert selected.tolist() == [0, 3]


def test_independent_draw_takes_the_best_and_the_first_of_equals():
    selected = np.empty(3, np.intp)
    trees.draw_independent(np.array([-1.0, 0.0, 2.0, 1.0, 3.0, 3.0, 0.0]), GROUP, selected)
    assert selected.tolist() == [0, 2, 4]


def test_perturbed_logits_are_normalised_logits_plus_noise():
    rng = np.random.default_rng(0)
    phi, noise = rng.normal(size=(2, 7)) + 800.0
    perturbed = np.empty(7)
    trees.perturb(phi, noise, GROUP, perturbed)
    for first, last in itertools.pairwise(GROUP):
        expected = np.log(naive.softmax(phi[first:last])) + noise[first:last]
        np.testing.assert_allclose(perturbed[first:last], expected, rtol=1e-12)


@pytest.mark.parametrize("temperature", [10.0, 1.0, 0.1])
def test_structure_gradient_is_the_jacobian_of_the_softmax(temperature):
    rng = np.random.default_rng(1)
    perturbed, d_choice = rng.normal(size=(2, 7))
    d_phi = np.empty(7)
    trees.structure_gradient(perturbed, GROUP, temperature, d_choice, d_phi)
    expected = naive.structure_gradient(perturbed.tolist(), GROUP.tolist(), temperature, d_choice.tolist())
    np.testing.assert_allclose(d_phi, expected, rtol=1e-10, atol=1e-15)


def test_gumbel_draws_follow_the_softmax():
    """Frequencies of 4,000 draws lie within four standard errors of the learnt probabilities."""
    rng = np.random.default_rng(2)
    phi = np.array([0.0, 1.0, -1.0])
    perturbed, selected, counts = np.empty(3), np.empty(1, np.intp), np.zeros(3)
    for noise in rng.gumbel(size=(4000, 3)):
        trees.perturb(phi, noise, np.array([0, 3]), perturbed)
        trees.draw_independent(perturbed, np.array([0, 3]), selected)
        counts[selected[0]] += 1
    p = np.array(naive.softmax(phi.tolist()))
    assert (np.abs(counts / 4000 - p) < 4 * np.sqrt(p * (1 - p) / 4000)).all()


def test_gumbel_noise_is_the_inverse_distribution_function():
    """Against double precision, at both ends of the grid of 2^-24 as well."""
    uniform = np.random.default_rng(0).random(805, dtype=np.float32)
    uniform[:4] = [0.0, 2.0**-24, 1 - 2.0**-23, 1 - 2.0**-24]
    noise = np.empty_like(uniform)
    trees.gumbel(uniform, noise)
    u = np.minimum((uniform + np.float32(2.0**-25)).astype(float), 1 - 2.0**-24)
    np.testing.assert_allclose(noise, -np.log(-np.log(u)), rtol=2e-6, atol=2e-6)
    assert noise.max() == pytest.approx(24 * np.log(2), rel=1e-6)
    assert noise.min() == pytest.approx(-np.log(25 * np.log(2)), rel=1e-6)


def side_by_side(arrays, order, gap):
    """Return copies of arrays of eight-byte numbers that lie in this order in memory, so many numbers apart."""
    memory, copies, end = np.empty(sum(len(array) + gap for array in arrays)), [None] * len(arrays), 0
    for k in order:
        copies[k] = memory[end : end + len(arrays[k])].view(arrays[k].dtype)
        copies[k][:] = arrays[k]
        end += len(arrays[k]) + gap
    return copies


@pytest.mark.parametrize("seed", range(10))
def test_structure_gradient_is_the_same_wherever_its_arrays_lie(seed):
    """To the last bit: a training that is repeated, or goes on after a break, finds its arrays elsewhere.

    A loop over vectors runs where LLVM's check of their addresses says so: not of arrays that touch each other.
    """
    rng = np.random.default_rng(seed)
    arrays = rng.gumbel(size=10), np.array([0, 1, 3, 6, 10]), rng.normal(size=10), np.zeros(10)
    found = set()
    for order, gap in itertools.product(itertools.permutations(range(4)), (0, 16)):
        perturbed, group, d_choice, d_phi = side_by_side(arrays, order, gap)
        trees.structure_gradient(perturbed, group, 2.0, d_choice, d_phi)
        found.add(d_phi.tobytes())
    assert len(found) == 1

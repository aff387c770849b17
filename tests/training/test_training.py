"""Gradient training: the step's gradient, reproducibility, schedules, stopping."""

import pickle

import numpy as np
import pytest

from tanlearn import CandidateSets, ConditionalNLL, EncodedData, Hybrid, JointNLL, Margin, MaximumLikelihood, Structure
from tanlearn.kernels import scores, trees
from tanlearn.models.log_joint import log_joint
from tanlearn.structures.candidate_kinds import CANDIDATE_KINDS, Candidates, make_candidates
from tanlearn.training.parametrizations import Normalized
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import error_rate, train


class SquaredHinge:
    """A user's own loss: NumPy only, the same two arrays."""

    def value_and_gradient(self, scores, y):
        rows = np.arange(len(y))
        others = scores.copy()
        others[rows, y] = -np.inf
        rival = others.argmax(axis=1)
        gap = np.maximum(0, 1 - scores[rows, y] + scores[rows, rival])
        d_scores = np.zeros_like(scores)
        d_scores[rows, y] = -2 * gap
        d_scores[rows, rival] = 2 * gap
        return gap**2, d_scores


class TurnsRound:
    """The conditional likelihood for so many calls, and from then on its opposite: what was learnt is unlearnt."""

    def __init__(self, n_calls):
        self.n_calls = n_calls

    def value_and_gradient(self, scores, y):
        self.n_calls -= 1
        losses, d_scores = ConditionalNLL().value_and_gradient(scores, y)
        return (losses, d_scores) if self.n_calls >= 0 else (-losses, -d_scores)


def xor_data(n=300, seed=0, weight=None):
    """Four binary features; the class is x0 xor x1, x3 copies x2, and a tenth of the classes are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 4))
    X[:, 3] = X[:, 2]
    y = X[:, 0] ^ X[:, 1] ^ (rng.random(n) < 0.1)
    return EncodedData.from_codes(X, y, sample_weight=weight)


def candidates(kind="order-free", n_features=4, seed=0):
    return make_candidates(
        Candidates(kind, image_shape=(2, n_features // 2) if kind == "heuristic" else None),
        n_features,
        rng=np.random.default_rng(seed),
        information=lambda: np.ones((n_features, n_features)),
        gains=lambda: np.ones((n_features, n_features)),
    )


def fit(data, sets, loss=None, seed=0, callback=None, validation=None, **settings):
    settings = TrainingSettings(**{"n_epochs": 30, "batch_size": 50, "learning_rate": 0.05, **settings})
    loss = Hybrid(trade_off=10) if loss is None else loss
    return train(data, sets, loss, settings, np.random.default_rng(seed), callback=callback, validation=validation)


def accuracy(outcome, data):
    return (log_joint(outcome.tables, outcome.structure, data.codes).argmax(axis=1) == data.y).mean()


@pytest.mark.parametrize("kind", CANDIDATE_KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_learnt_structures_are_acyclic_but_for_unconstrained(kind, seed):
    sets = candidates(kind, seed=seed)
    outcome = fit(xor_data(), sets, seed=seed, n_epochs=3)
    assert outcome.structure.is_acyclic or kind == "unconstrained"
    allowed = [sets.parents[a:b, 0] for a, b in zip(sets.group[:-1], sets.group[1:], strict=True)]
    assert all(j in given for j, given in zip(outcome.structure.parent, allowed, strict=True))


def test_unconstrained_does_form_cycles():
    """Two copies each want the other; nothing stops them."""
    outcome = fit(xor_data(), candidates("unconstrained"), JointNLL(), structure_learning_rate=0.05)
    assert not outcome.structure.is_acyclic


@pytest.mark.parametrize(
    "loss",
    [Hybrid(trade_off=10, gamma=1), ConditionalNLL(), Margin(scale=0.5), SquaredHinge()],
    ids=lambda loss: type(loss).__name__,
)
def test_every_loss_learns_exclusive_or(loss):
    """Naive Bayes is at chance; a tree with the edge between x0 and x1 gets the nine tenths that can be had."""
    data = xor_data()
    outcome = fit(data, candidates("order-free"), loss, structure_learning_rate=0.05)
    parent = outcome.structure.parent
    assert parent[0] == 1 or parent[1] == 0
    assert accuracy(outcome, data) > 0.85


def test_same_seed_same_model_and_another_seed_another():
    data, sets = xor_data(), candidates("order-free")
    first, second, third = (fit(data, sets, seed=seed, n_epochs=3).tables.cells for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_learnt_tables_are_normalised_float64(dtype):
    tables = fit(xor_data(), candidates("all"), dtype=dtype, n_epochs=2).tables
    assert tables.cells.dtype == np.float64
    for i in range(len(tables)):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1, rtol=1e-12)
    assert np.exp(tables.log_prior).sum() == pytest.approx(1)


def test_fixed_structure_with_joint_likelihood_converges_to_the_frequencies():
    """The closed form is the optimum of the joint NLL; plain Adam gets there."""
    data, structure = xor_data(), Structure([-1, 0, -1, 2])
    outcome = fit(
        data,
        CandidateSets.of_structure(structure),
        JointNLL(),
        n_epochs=400,
        batch_size=300,
        learning_rate=0.3,
        dtype="float64",
    )
    exact = MaximumLikelihood(alpha=0).fit(structure, data, np.random.default_rng(0))
    assert outcome.structure == structure
    for i in (0, 1, 2):
        np.testing.assert_allclose(outcome.tables.probabilities(i), exact.probabilities(i), atol=2e-3)


def test_maximum_likelihood_start_begins_at_the_frequencies():
    data, structure = xor_data(), Structure([-1, 0, -1, 2])
    start = MaximumLikelihood(alpha=1).fit(structure, data, np.random.default_rng(0))
    outcome = fit(
        data,
        CandidateSets.of_structure(structure),
        init="maximum-likelihood",
        n_epochs=1,
        batch_size=300,
        learning_rate=1e-9,
    )
    np.testing.assert_allclose(outcome.tables.cells, start.cells, atol=1e-5)


def test_settings_are_the_published_protocol_unless_told_otherwise():
    """Differentiable TAN, section 4.2: 500 epochs, batches of 100, rates 3e-2 and 1e-3, temperatures 10 to 0.1."""
    settings = TrainingSettings()
    assert (settings.n_epochs, settings.batch_size) == (500, 100)
    assert (settings.learning_rate, settings.structure_learning_rate) == (3e-2, 1e-3)
    assert settings.temperature == (10.0, 0.1)
    assert (settings.init, settings.dtype) == ("uniform", "float32")
    assert (settings.patience, settings.fixed_point, settings.size_weight) == (None, None, 0.0)


def test_schedules_fall_exponentially_as_published():
    reports = []
    fit(xor_data(), candidates("all"), n_epochs=5, learning_rate=3e-2, callback=reports.append)
    assert [report.epoch for report in reports] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([report.learning_rate for report in reports], 3e-2 * 1e-3 ** (np.arange(5) / 4))
    np.testing.assert_allclose([report.temperature for report in reports], 10 * 1e-2 ** (np.arange(5) / 4))
    assert all(np.isfinite(report.loss) for report in reports)
    assert reports[0].validation_error is None


def test_callback_stops_the_training():
    outcome = fit(xor_data(), candidates("all"), callback=lambda report: report.epoch == 2)
    assert [report.epoch for report in outcome.history] == [1, 2]


def test_best_epoch_on_validation_rows_is_kept_and_patience_stops():
    data = xor_data(600)
    train_part, held_out = data.take(np.arange(400)), data.take(np.arange(400, 600))
    outcome = fit(
        train_part,
        candidates("order-free"),
        validation=held_out,
        n_epochs=200,
        patience=10,
        structure_learning_rate=0.05,
    )
    errors = [report.validation_error for report in outcome.history]
    assert len(errors) < 200
    assert min(errors) < min(errors[:1])
    assert 1 - accuracy(outcome, held_out) == pytest.approx(min(errors))
    assert errors.index(min(errors)) == len(errors) - 11


def test_the_best_epoch_is_restored_when_later_ones_are_worse():
    data, reports = xor_data(), []
    held_out = xor_data(seed=1)
    sets = CandidateSets.of_structure(Structure([-1, 0, -1, 2]))
    options = {"n_epochs": 12, "batch_size": 50, "learning_rate": 0.3}  # it turns after the first epoch
    outcome = fit(data, sets, TurnsRound(6), validation=held_out, callback=reports.append, **options)
    errors = [report.validation_error for report in reports]
    assert min(errors) < 0.2
    assert errors[-1] > 2 * min(errors)
    assert 1 - accuracy(outcome, held_out) == pytest.approx(min(errors))


def test_of_equally_good_epochs_the_latest_is_kept():
    """All rows are right from the first epoch on, while the tables still move."""
    y = np.arange(100) % 2
    data, sets = EncodedData.from_codes(y[:, np.newaxis], y), CandidateSets.from_lists([[]])
    kept, latest = (fit(data, sets, n_epochs=5, validation=validation) for validation in (data, None))
    assert [report.validation_error for report in kept.history] == [0.0] * 5
    np.testing.assert_allclose(kept.tables.cells, latest.tables.cells, rtol=1e-5)
    first = fit(data, sets, n_epochs=5, callback=lambda report: True)
    assert np.abs(first.tables.cells - latest.tables.cells).max() > 0.01


def test_error_rate_is_weighted():
    """A table that tells the class by the only feature; the wrong row weighs as much as all others together."""
    structure = Structure([-1])
    certain = EncodedData.from_codes([[0], [1]], [0, 1])
    tables = MaximumLikelihood().fit(structure, certain, np.random.default_rng(0))
    codes, y = [[0], [1], [1], [1]], [0, 1, 1, 0]
    assert error_rate(structure, tables, EncodedData.from_codes(codes, y)) == 0.25
    assert error_rate(structure, tables, EncodedData.from_codes(codes, y, sample_weight=[1, 2, 0, 3])) == 0.5


def test_structure_probabilities_are_distributions_over_the_candidates():
    sets = candidates("all")
    outcome = fit(xor_data(), sets)
    for i, shares in enumerate(outcome.probabilities):
        assert sum(shares.values()) == pytest.approx(1)
        assert list(shares) == sets.parents[sets.group[i] : sets.group[i + 1], 0].tolist()
    assert [max(shares, key=shares.get) for shares in outcome.probabilities] == outcome.structure.parent.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_relative_to_their_mean(dtype):
    """Adam takes the same steps for five times the loss; the loss itself tells."""
    weighted, plain = (
        fit(xor_data(weight=weight), candidates("all"), n_epochs=2, dtype=dtype) for weight in (np.full(300, 5), None)
    )
    np.testing.assert_allclose(
        [report.loss for report in weighted.history], [report.loss for report in plain.history], rtol=1e-5
    )
    np.testing.assert_allclose(weighted.tables.cells, plain.tables.cells, rtol=1e-5)


def test_weights_decide_between_contradicting_rows():
    X, y = np.zeros((200, 1), int), np.arange(200) % 2
    data = EncodedData.from_codes(X, y, n_states=[2], sample_weight=np.where(y == 1, 3.0, 1.0))
    outcome = fit(data, CandidateSets.from_lists([[]]), ConditionalNLL(), n_epochs=100)
    posterior = log_joint(outcome.tables, outcome.structure, data.codes)
    assert np.exp(posterior[0, 1] - posterior[0, 0]) == pytest.approx(3, rel=0.1)


def test_divergence_is_an_error_and_leaves_no_model():
    with pytest.raises(FloatingPointError, match=r"training diverged in epoch 1.*Lower learning_rate"):
        fit(xor_data(), candidates("all"), learning_rate=1e39)


def test_a_single_class_is_refused():
    data = EncodedData.from_codes([[0, 1], [1, 0]], [0, 0], n_classes=1)
    with pytest.raises(ValueError, match="training by gradient needs at least two classes, got 1"):
        fit(data, candidates("all", n_features=2))


def test_missing_values_are_refused_where_draws_may_have_cycles():
    data = EncodedData.from_codes([[0, -1], [1, 1]], [0, 1], n_states=[2, 2])
    cyclic = CandidateSets.from_lists([[1], [0]], allow_cycles=True)
    with pytest.raises(ValueError, match=r"A pseudo-TAN.* learns from complete rows only"):
        fit(data, cyclic)
    one_by_one = CandidateSets(cyclic.parents, cyclic.group)
    with pytest.raises(ValueError, match="marginalized in the cycles that these candidates can form"):
        fit(data, one_by_one)


def test_outcome_survives_pickling():
    outcome = fit(xor_data(), candidates("order-free"), n_epochs=1)
    again = pickle.loads(pickle.dumps(outcome))
    assert again.structure == outcome.structure
    np.testing.assert_array_equal(again.tables.cells, outcome.tables.cells)


def test_gradient_of_one_step_equals_finite_differences():
    """Composition of all kernels at a fixed draw: rho by differences of the loss, choices by swapping tables."""
    data, sets = xor_data(20), candidates("all")
    layout, loss, rng = sets.layout(data.n_states, 2), ConditionalNLL(), np.random.default_rng(3)
    rho = rng.normal(size=layout.n_cells)
    selected = np.array([sets.group[i + 1] - 1 for i in range(4)])
    parametrization, arrays, rows = Normalized(layout), layout.arrays(), np.empty(20, np.intp)

    def mean_loss(rho):
        theta, out = parametrization.forward(rho), np.empty((20, 2))
        scores.log_joint(data.codes, 0, theta, *arrays, selected, 255, rows, out)
        losses, d_scores = loss.value_and_gradient(out, data.y)
        return losses.mean(), theta, d_scores / 20

    _, theta, d_scores = mean_loss(rho)
    d_cells = np.zeros(layout.n_cells)
    scores.log_joint_adjoint(data.codes, 0, d_scores, *arrays, selected, 255, rows, d_cells)
    parametrization.pull_back(theta, d_cells, out=d_cells, tables=selected)
    for cell in range(layout.n_cells):
        step = np.zeros(layout.n_cells)
        step[cell] = 1e-6
        slope = (mean_loss(rho + step)[0] - mean_loss(rho - step)[0]) / 2e-6
        assert d_cells[cell] == pytest.approx(slope, abs=1e-8)


def test_expected_structure_gradient_points_to_the_better_table():
    """The straight-through gradient is biased, but on average it lowers the logit of the worse table."""
    rng, total = np.random.default_rng(0), np.zeros(2)
    perturbed, d_phi = np.empty(2), np.empty(2)
    for noise in rng.gumbel(size=(200, 2)):
        trees.perturb(np.zeros(2), noise, np.array([0, 2]), perturbed)
        trees.structure_gradient(perturbed, np.array([0, 2]), 1.0, np.array([1.0, -1.0]), d_phi)
        total += d_phi
    assert total[0] > 0 > total[1]


@pytest.mark.parametrize(
    "answer",
    [
        lambda scores, y: (np.zeros(len(y)), np.zeros((len(y), 1))),
        lambda scores, y: (np.zeros(len(y)), np.zeros((len(y), 3))),
        lambda scores, y: (0.0, np.zeros_like(scores)),
        lambda scores, y: (np.zeros((len(y), 1)), np.zeros_like(scores)),
    ],
    ids=["one column", "three columns", "one number", "column vector"],
)
def test_a_users_loss_of_wrong_shape_is_refused_before_it_reaches_a_kernel(answer):
    class Wrong:
        def value_and_gradient(self, scores, y):
            return answer(scores, y)

    with pytest.raises(ValueError, match=r"Wrong.value_and_gradient must return one loss per row, shape \(50,\)"):
        fit(xor_data(), candidates("all"), Wrong())


def test_a_training_starts_where_another_ended():
    data, sets = xor_data(), candidates("all")
    first = fit(data, sets, n_epochs=3)
    again = train(
        data,
        sets,
        Hybrid(),
        TrainingSettings(n_epochs=1, learning_rate=1e-12, structure_learning_rate=0),
        np.random.default_rng(0),
        start=first.parameters,
    )
    np.testing.assert_allclose(again.parameters[0], first.parameters[0], atol=1e-6)
    np.testing.assert_array_equal(again.parameters[1], first.parameters[1])
    assert np.abs(first.parameters[1]).max() > 0
    with pytest.raises(ValueError, match="candidates, columns, categories and classes must be the same"):
        train(
            data,
            candidates("order-free"),
            Hybrid(),
            TrainingSettings(n_epochs=1),
            np.random.default_rng(0),
            start=first.parameters,
        )

"""Parent dropout: what may be drawn, how often, and that the structure's own families come out."""

import itertools

import numpy as np
import pytest

from tanlearn import EncodedData, Hybrid, MaximumLikelihood, StochasticGradient, Structure
from tanlearn.models.log_joint import log_joint
from tanlearn.training.parent_dropout import N_ALTERNATIVES, with_alternatives
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import train

CHAIN = Structure([-1, 0, 1, 2, -1, 4])
PAIRS = Structure([[-1, -1], [0, -1], [0, 1], [-1, -1], [1, 3], [4, -1]])


def rows(n=300, n_features=6, seed=0, n_missing=0):
    """Features that copy the one before half of the time, in one class the other way round."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.integers(0, 3, (n, n_features))
    for i in range(1, n_features):
        copied = rng.random(n) < 0.5
        X[copied, i] = (X[copied, i - 1] * (1 + y[copied])) % 3
    codes = X.astype(np.uint8)
    codes[rng.random(codes.shape) < n_missing / n_features] = 255
    return EncodedData(np.ascontiguousarray(codes.T), np.full(n_features, 3), y, 2)


def learn(structure, data, seed=0, **settings):
    settings = {"loss": Hybrid(trade_off=20, gamma=2), "n_epochs": 6, "batch_size": 30, "calibrate": False, **settings}
    return StochasticGradient(**settings).fit(structure, data, np.random.default_rng(seed))


@pytest.mark.parametrize("structure", [CHAIN, PAIRS, Structure([-1] * 6), Structure([-1, *range(20)])])
def test_own_family_is_first_and_others_come_before_the_feature(structure):
    sets, phi = with_alternatives(structure, 0.3, np.random.default_rng(0))
    place = np.argsort(structure.order)
    for i, (a, b) in enumerate(itertools.pairwise(sets.group)):
        families = [tuple(j for j in family if j >= 0) for family in sets.parents[a:b].tolist()]
        own = tuple(j for j in structure.parents[i].tolist() if j >= 0)
        assert families[0] == own
        assert len(set(families)) == len(families)
        assert all(place[j] < place[i] for family in families for j in family)
        assert () in families
        assert len([family for family in families[1:] if family]) == min(place[i] - (len(own) == 1), N_ALTERNATIVES)
        share = np.exp(phi[a:b]) / np.exp(phi[a:b]).sum()
        np.testing.assert_allclose(share, [0.7, *np.full(b - a - 1, 0.3 / (b - a - 1))] if b - a > 1 else [1.0])
    assert sets.is_acyclic
    assert sets.draws == "independent"


def test_logits_stay_and_the_structure_comes_out():
    """Also of a feature that has one other family, as probable as its own."""
    data = rows()
    sets, phi = with_alternatives(CHAIN, 0.5, np.random.default_rng(0))
    settings = TrainingSettings(n_epochs=30, batch_size=30, structure_learning_rate=0.0, temperature=(1e-3, 1e-3))
    outcome = train(data, sets, Hybrid(), settings, np.random.default_rng(0), start=(None, phi))
    np.testing.assert_array_equal(outcome.parameters[1], phi)
    assert outcome.structure == CHAIN


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("structure", [CHAIN, PAIRS], ids=["chain", "pairs"])
@pytest.mark.parametrize("n_missing", [0, 1])
def test_tables_are_distributions_of_the_structure(structure, n_missing, dtype):
    data = rows(n_missing=n_missing)
    tables = learn(structure, data, parent_dropout=0.4, dtype=dtype)
    plain = MaximumLikelihood().fit(structure, data, None)
    assert [tables[i].shape for i in range(6)] == [plain[i].shape for i in range(6)]
    for i in range(6):
        np.testing.assert_allclose(tables.probabilities(i).sum(axis=0), 1, rtol=1e-9)
    right = log_joint(tables, structure, data.codes).argmax(axis=1) == data.y
    assert right.mean() > 0.6


def test_same_seed_same_tables_and_without_dropout_nothing_is_drawn():
    data = rows()
    first, again, other = (learn(CHAIN, data, seed, parent_dropout=0.3).cells for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(learn(CHAIN, data).cells, learn(CHAIN, data, parent_dropout=0.0).cells)
    assert (first != learn(CHAIN, data).cells).any()


def test_training_rows_are_learnt_less_by_heart():
    """Of 60 rows with random classes a tree with many values learns most; with families that go, fewer."""
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 4, (60, 6)), rng.integers(0, 2, 60))

    def loss(parent_dropout):
        learner = StochasticGradient(
            loss=Hybrid(trade_off=100), n_epochs=60, batch_size=20, parent_dropout=parent_dropout, calibrate=False
        )
        learner.fit(CHAIN, data, np.random.default_rng(0))
        return learner.history_[-1].loss

    assert loss(0.5) > loss(0.25) > loss(0.0)


def test_few_bits_and_calibration_go_along():
    data = rows()
    tables = learn(CHAIN, data, parent_dropout=0.3, bits=(3, 1))
    assert tables.bits == (3, 1)
    learner = StochasticGradient(n_epochs=3, batch_size=30, parent_dropout=0.3)
    learner.fit(CHAIN, data, np.random.default_rng(0))
    assert learner.calibration_.temperature > 0


def test_cycles_and_shares_out_of_range_are_refused():
    cycle = Structure([1, 0], allow_cycles=True)
    two = rows(n_features=2)
    with pytest.raises(ValueError, match=r"this structure has a cycle\. Set parent_dropout=0"):
        learn(cycle, two, parent_dropout=0.3)
    learn(cycle, two)
    for wrong in (-0.1, 0.6):
        with pytest.raises(ValueError, match="'parent_dropout' parameter of StochasticGradient must be"):
            learn(CHAIN, rows(), parent_dropout=wrong)

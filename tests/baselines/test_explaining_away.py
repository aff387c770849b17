"""Trees of explaining-away residuals against the enumeration of all forests."""

import itertools
import math

import numpy as np
import pytest
from oracles import networks as naive

from tanlearn import BayesNetClassifier, EncodedData, PairCounts
from tanlearn.baselines import ExplainingAway

RNG = np.random.default_rng(0)


def data_of(seed, n=80, weight=None, missing=0.0):
    """Return features of which some are dependent alone, and some only given the class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 4))
    X[:, 1] = np.where(rng.random(n) < 0.8, X[:, 0], X[:, 1])
    y = np.where(rng.random(n) < 0.8, (X[:, 2] + X[:, 3]) % 3, rng.integers(0, 3, n))
    X[rng.random(X.shape) < missing] = -1
    weight = None if weight is None else rng.integers(0, 4, n)
    return EncodedData.from_codes(X, y, n_states=[3] * 4, n_classes=3, sample_weight=weight)


def information(x, z, weight):
    """I(X; Z) in nats, from the weights of the values."""
    total, result = weight.sum(), 0.0
    for a, b in itertools.product(set(x), set(z)):
        p = weight[(x == a) & (z == b)].sum() / total
        if p > 0:
            result += p * math.log(p * total**2 / (weight[x == a].sum() * weight[z == b].sum()))
    return result


def residuals(data):
    """EAR of all pairs, from the rows in which both features are present."""
    X, weight = data.codes.T.astype(int), data.weights
    found = np.zeros((4, 4))
    for i, j in itertools.permutations(range(4), 2):
        seen = (X[:, i] < 3) & (X[:, j] < 3) & (weight > 0)
        x, z, y, w = X[seen, i], X[seen, j], data.y[seen], weight[seen]
        given = sum(w[y == c].sum() / w.sum() * information(x[y == c], z[y == c], w[y == c]) for c in set(y))
        found[i, j] = given - information(x, z, w)
    return found


@pytest.mark.parametrize("weight", [None, "integers"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_no_forest_has_a_larger_sum_of_residuals(seed, weight, missing):
    data = data_of(seed, weight=weight, missing=missing)
    of_pairs = residuals(data)

    def total(parent):
        return sum(of_pairs[i, j] for i, j in enumerate(parent) if j >= 0)

    structure = ExplainingAway().learn(data, RNG)
    assert total(structure.parent) == pytest.approx(max(map(total, naive.all_forests(4))), rel=1e-9)
    assert structure.n_edges > 0
    state = PairCounts.of_features(data).update(data)
    assert ExplainingAway().from_counts(state) == structure
    tree = ExplainingAway(spanning=True).learn(data, RNG)
    trees = [parent for parent in naive.all_forests(4) if sum(j >= 0 for j in parent) == 3]
    assert tree.n_edges == 3
    assert total(tree.parent) == pytest.approx(max(map(total, trees)), rel=1e-9)


def test_edges_that_lower_the_residual_are_omitted():
    """The copies are dependent to the same degree with and without the class, up to a negative difference."""
    x = np.random.default_rng(3).integers(0, 2, 200)
    data = EncodedData.from_codes(np.stack([x, x], axis=1), x)  # I(X; Z | C) = 0, I(X; Z) = H(X)
    assert ExplainingAway().learn(data, RNG).n_edges == 0
    assert ExplainingAway(spanning=True).learn(data, RNG).n_edges == 1


def test_root_is_the_most_informative_feature_or_the_given_one():
    data = data_of(1)
    for root in range(4):
        assert ExplainingAway(root=root).learn(data, RNG).parent[root] == -1
    with pytest.raises(ValueError, match=r"root must be a feature \(0\.\.3\), got 4"):
        ExplainingAway(root=4).learn(data, RNG)


def test_batches_give_the_same_forest():
    X = np.random.default_rng(5).integers(0, 3, (120, 5))
    y = (X[:, 0] + X[:, 1]) % 3
    model = BayesNetClassifier(structure=ExplainingAway())
    whole = model.fit(X, y)
    batches = BayesNetClassifier(structure=ExplainingAway()).fit_batches([(X[:50], y[:50]), (X[50:], y[50:])])
    assert whole.structure_ == batches.structure_
    assert whole.structure_.n_edges > 0

"""Log joint of single rows of networks of terms, beside that of tables."""

import itertools

import numpy as np
import pytest

from tanlearn.models import row_scorers
from tanlearn.models.bayes_net import BayesNet
from tests.support.term_networks import random_network

N_STATES = [4, 3, 1, 5, 2]
TREE, TWO = [[-1], [0], [0], [1], [3]], [[-1, -1], [0, -1], [1, 0], [1, 0], [3, 1]]


@pytest.mark.parametrize(
    ("limit", "value"),
    [("_MOST_DENSE", row_scorers._MOST_DENSE), ("_MOST_DENSE", 0), ("_MOST_MICROSECONDS", -1)],
    ids=["dense CPTs", "large CPTs", "expensive rows"],
)
@pytest.mark.parametrize("parents", [TREE, TWO], ids=["one parent", "two parents"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_scores_of_single_rows_are_those_of_tables(monkeypatch, parents, n_classes, limit, value):
    monkeypatch.setattr(row_scorers, limit, value)
    tables, structure, _ = random_network(parents, N_STATES, n_classes)
    model = BayesNet(structure, tables)
    score, rng = model.row_scorer(), np.random.default_rng(0)
    for mask in itertools.product([False, True], repeat=len(N_STATES)):
        row = np.where(mask, 255, rng.integers(0, N_STATES)).astype(np.intp)
        expected = model.log_joint(row.astype(np.uint8)[:, np.newaxis])[0]
        is_exact = parents is TREE or not any(mask)  # otherwise, the order of sums may differ
        np.testing.assert_allclose(score(row), expected, rtol=0, atol=0 if is_exact else 1e-12, err_msg=str(mask))

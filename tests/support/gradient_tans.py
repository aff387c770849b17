"""Small problems for gradient TAN, and the losses to train by."""

import numpy as np

from tanlearn import (
    CandidateSets,
    ConditionalNLL,
    EncodedData,
    HingeMargin,
    Hybrid,
    JointNLL,
    Margin,
    Structure,
)
from tanlearn.structures.candidate_kinds import Candidates, make_candidates
from tanlearn.training.losses import SoftHybrid

LOSSES = [
    JointNLL(),
    ConditionalNLL(),
    HingeMargin(gamma=2),
    Margin(scale=0.5),
    Hybrid(trade_off=20, gamma=2),
    SoftHybrid(),
]
N_STATES = [3, 2, 4, 1, 5]


def problem(kind, weighted=False, seed=0, n=230):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.stack([(y * rng.integers(0, 2, n) + rng.integers(0, k, n)) % k for k in N_STATES], axis=1)
    weight = rng.uniform(0.5, 2, n) if weighted else None
    data = EncodedData.from_codes(X, y, n_states=N_STATES, sample_weight=weight)
    if isinstance(kind, Structure):
        sets = CandidateSets.of_structure(kind)
    else:
        limit = None if kind == "all" else 3
        sets = make_candidates(Candidates(kind, n_candidates=limit), 5, rng=rng)
    return data, sets

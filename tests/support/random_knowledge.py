"""Random knowledge without contradictions."""

import numpy as np


def random_knowledge(seed, n_features, max_required=1):
    """Return required and forbidden edges and tiers over features, as arguments of Knowledge and of its oracle.

    A random order of the features contains the tiers and the required edges, so that a structure with all of them
    exists.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_features).tolist()
    tiers = []
    if rng.random() < 0.6:
        cuts = sorted(rng.choice(np.arange(1, n_features), 2).tolist())
        tiers = [part for part in (order[: cuts[0]], order[cuts[0] : cuts[1]], order[cuts[1] :]) if part]
        tiers[0] = tiers[0][1:]  # one feature is in no tier
    required = []
    for position in range(1, n_features):
        if rng.random() < 0.35:
            n_parents = int(rng.integers(1, min(position, max_required) + 1))
            required += [(j, order[position]) for j in rng.choice(order[:position], n_parents, replace=False).tolist()]
    pairs = [(j, i) for i in range(n_features) for j in range(n_features) if i != j and (j, i) not in required]
    forbidden = [pair for pair in pairs if rng.random() < 0.3]
    return {"required": required, "forbidden": forbidden, "tiers": tiers}

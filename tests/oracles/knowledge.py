"""Structures that knowledge permits, by enumeration of all structures."""

import itertools


def permits(parents, required=(), forbidden=(), tiers=()):
    """Return whether a structure has all required edges, and none that is forbidden or leads to an earlier tier.

    ``parents`` has the set of parents of each feature. Edges are (parent, child), tiers are lists of features.
    """
    edges = [(j, i) for i, own in enumerate(parents) for j in own]
    tier = {i: k for k, members in enumerate(tiers) for i in members}
    backward = [1 for j, i in edges if i in tier and j in tier and tier[j] > tier[i]]
    return set(required) <= set(edges) and not set(forbidden) & set(edges) and not backward


def is_acyclic(parents):
    """Return whether features can be removed one after the other, each without parents among the others."""
    left = set(range(len(parents)))
    while left:
        free = [i for i in left if not set(parents[i]) & left]
        if not free:
            return False
        left.remove(free[0])
    return True


def structures(n_features, max_parents, **knowledge):
    """Yield the parents of all features in each acyclic structure that the knowledge permits."""
    choices = []
    for i in range(n_features):
        others = [j for j in range(n_features) if j != i]
        choices.append([own for size in range(max_parents + 1) for own in itertools.combinations(others, size)])
    for parents in itertools.product(*choices):
        if permits(parents, **knowledge) and is_acyclic(parents):
            yield parents

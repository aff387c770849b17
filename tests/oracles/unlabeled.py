"""Expectation maximization over the classes of unlabeled rows, by enumeration. Nothing here knows tanlearn."""

import math

from oracles import elimination as naive
from oracles import latent_classes as latent
from oracles import networks


def is_needed(sample, parents):
    """Return, for each feature, whether it is observed or has an observed descendant."""
    needed = [value >= 0 for value in sample]
    for _ in sample:  # as often as the longest path
        for i, given in enumerate(parents):
            for j in given:
                if needed[i] and j >= 0:
                    needed[j] = True
    return needed


def expected_counts(samples, weights, cells, parents, n_states, n_classes):
    """Return the expected count of each cell over classes and completions; families of no use count nothing."""
    start = networks.offsets(range(len(parents)), parents, n_states, n_classes)
    total = [0.0] * len(cells)
    for sample, weight in zip(samples, weights, strict=True):
        of_classes = latent.posterior(sample, cells, parents, n_states, n_classes)
        own = naive.expected_counts(sample, [weight * p for p in of_classes], cells, parents, n_states, n_classes)
        for i, needed in enumerate(is_needed(sample, parents)):
            if not needed:
                own[start[i] : start[i + 1]] = [0.0] * (start[i + 1] - start[i])
        total = [a + b for a, b in zip(total, own, strict=True)]
    return total


def frequencies(counts, alpha, parents, n_states, n_classes):
    """Return the logarithms of smoothed frequencies, distribution by distribution."""
    start = networks.offsets(range(len(parents)), parents, n_states, n_classes)
    cells = [0.0] * len(counts)
    prior = range(n_classes)
    distributions = [list(prior)]
    for i in range(len(parents)):
        n_given = (start[i + 1] - start[i]) // n_states[i]
        distributions += [[start[i] + x * n_given + h for x in range(n_states[i])] for h in range(n_given)]
    for places in distributions:
        total = sum(counts[k] + alpha for k in places)
        for k in places:
            cells[k] = math.log((counts[k] + alpha) / total)
    return cells


def objective(known, samples, weights, alpha, cells, parents, n_states, n_classes):
    """Return the penalized log-likelihood: counted labeled rows, unlabeled rows, and the prior of the parameters."""
    counted = sum((n + alpha) * cell for n, cell in zip(known, cells, strict=True))
    logs = [latent.evidence(sample, cells, parents, n_states, n_classes) for sample in samples]
    return counted + sum(weight * log for weight, log in zip(weights, logs, strict=True))


def left_out(known, samples, y, cells_of, parents, n_states, n_classes):
    """Return the log joint of each labeled sample, with its own count taken out of counts before the cells are made."""
    found = []
    for sample, c in zip(samples, y, strict=True):
        one = networks.count_cells([sample], [c], [1.0], range(len(parents)), parents, n_states, n_classes)
        cells = cells_of([a - b for a, b in zip(known, one, strict=True)])
        found.append(naive.log_joint(sample, cells, parents, n_states, n_classes))
    return found

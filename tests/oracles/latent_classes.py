"""Networks whose class is latent, by enumeration of classes and completions. Nothing here knows tanlearn."""

import itertools
import math

from oracles import elimination as naive


def evidence(sample, cells, parents, n_states, n_classes):
    """Return log p(what is observed)."""
    return math.log(math.fsum(math.exp(s) for s in naive.log_joint(sample, cells, parents, n_states, n_classes)))


def posterior(sample, cells, parents, n_states, n_classes):
    """Return p(class | what is observed) for every class."""
    total = evidence(sample, cells, parents, n_states, n_classes)
    return [math.exp(s - total) for s in naive.log_joint(sample, cells, parents, n_states, n_classes)]


def value_probabilities(sample, i, cells, parents, n_states, n_classes):
    """Return p(feature i is v | what else is observed) for every value v."""
    total = evidence(sample, cells, parents, n_states, n_classes)
    found = []
    for v in range(n_states[i]):
        inserted = [*sample[:i], v, *sample[i + 1 :]]
        found.append(math.exp(evidence(inserted, cells, parents, n_states, n_classes) - total))
    return found


def joint_probabilities(sample, features, cells, parents, n_states, n_classes):
    """Return p(values of the features | what is observed) for every combination of their values."""
    total = evidence(sample, cells, parents, n_states, n_classes)
    found = {}
    for values in itertools.product(*(range(n_states[i]) for i in features)):
        inserted = list(sample)
        for i, value in zip(features, values, strict=True):
            inserted[i] = value
        found[values] = math.exp(evidence(inserted, cells, parents, n_states, n_classes) - total)
    return found


def completion_probabilities(sample, cells, parents, n_states, n_classes):
    """Return p(completion | what is observed) for every completion of a sample."""
    total = evidence(sample, cells, parents, n_states, n_classes)
    return {
        x: math.exp(evidence(x, cells, parents, n_states, n_classes) - total)
        for x in naive.completions(sample, n_states)
    }


def expected_counts(samples, cells, parents, n_states, n_classes):
    """Return the expected count of every cell, over classes and completions."""
    total = [0.0] * len(cells)
    for sample in samples:
        weights = posterior(sample, cells, parents, n_states, n_classes)
        own = naive.expected_counts(sample, weights, cells, parents, n_states, n_classes)
        total = [a + b for a, b in zip(total, own, strict=True)]
    return total


def smoothed_line(counts, part):
    """Return a line of counts of which each gives a part to each neighbor, and keeps it where there is none."""
    found = [0.0] * len(counts)
    for k, count in enumerate(counts):
        found[k] += (1 - 2 * part) * count
        for neighbor in (k - 1, k + 1):
            found[neighbor if 0 <= neighbor < len(counts) else k] += part * count
    return found

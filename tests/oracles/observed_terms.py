"""CPT entries as sums of terms over the subsets of parents, as dictionaries, one combination at a time."""

import itertools
import math


def subsets(parents):
    """Return all subsets of the parents, smaller subsets first."""
    return [subset for size in range(len(parents) + 1) for subset in itertools.combinations(parents, size)]


def term_numbers(families, n_states, n_classes):
    """Return the number of each parameter by (child, subset of parents, value, values of the subset, class).

    The parameters of the class prior come first.
    """
    numbers, count = {}, n_classes
    for child, parents in enumerate(families):
        for subset in subsets(parents):
            for x in range(n_states[child]):
                for values in itertools.product(*(range(n_states[j]) for j in subset)):
                    for c in range(n_classes):
                        numbers[child, subset, x, values, c] = count
                        count += 1
    return numbers


def observed_entries(rows, families, n_states, n_classes, parameters):
    """Return the CPT entries of parent values that occur in rows: for each child, by (value, parent values, class).

    Parent values are in increasing order.
    """
    numbers, result = term_numbers(families, n_states, n_classes), []
    for child, parents in enumerate(families):
        entries = {}
        observed = sorted({tuple(int(row[j]) for j in parents) for row in rows})
        for x in range(n_states[child]):
            for values in observed:
                for c in range(n_classes):
                    keys = (tuple(values[parents.index(j)] for j in subset) for subset in subsets(parents))
                    terms = zip(subsets(parents), keys, strict=True)
                    entries[x, values, c] = math.fsum(
                        parameters[numbers[child, subset, x, own, c]] for subset, own in terms
                    )
        result.append(entries)
    return result

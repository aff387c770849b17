"""Expected gains of observing features, by enumeration of all rows and all plans. Nothing here knows tanlearn."""

import itertools
import math

from oracles import networks as naive


class Joint:
    """p(row, class) of every row and class, in a dictionary; -1 is a value that has not been observed."""

    def __init__(self, cells, parents, n_states, n_classes):
        rows = list(itertools.product(*map(range, n_states)))
        every = range(len(parents))
        scores = naive.log_joint(rows, cells, every, parents, n_states, n_classes, every)
        self.p = {row: [math.exp(score) for score in own] for row, own in zip(rows, scores, strict=True)}
        self.n_states, self.n_classes = n_states, n_classes

    def of(self, sample):
        """Return p(class, what is observed) for every class."""
        fits = [p for row, p in self.p.items() if all(s in (-1, v) for s, v in zip(sample, row, strict=True))]
        return [math.fsum(p[c] for p in fits) for c in range(self.n_classes)]


def with_value(sample, i, value):
    """Return a sample with one more value."""
    return [*sample[:i], value, *sample[i + 1 :]]


def value_joints(joint, sample):
    """Return p(class, what is observed, feature i is v), as lists [i][v][class]; 0 for values it does not have."""
    nothing = [0.0] * joint.n_classes
    return [
        [joint.of(with_value(sample, i, v)) if sample[i] in (-1, v) else nothing for v in range(n)]
        for i, n in enumerate(joint.n_states)
    ]


def entropy(p):
    """Return the entropy of probabilities in bits."""
    return -math.fsum(x * math.log2(x) for x in p if x > 0)


def best_utility(p, utility):
    """Return the expected utility of the best decision."""
    return max(math.fsum(x * row[d] for x, row in zip(p, utility, strict=True)) for d in range(len(utility[0])))


def answers(joint, sample, prior, i):
    """Yield value, its probability, and the probabilities of the classes after it, from those before it.

    ``prior`` are the probabilities of the classes given the sample, whatever they come from: Bayes' rule.
    """
    before = joint.of(sample)
    for v in range(joint.n_states[i]):
        after = joint.of(with_value(sample, i, v))
        q = [w * a / b if b > 0 else 0.0 for w, a, b in zip(prior, after, before, strict=True)]
        if sum(q) > 0:
            yield v, sum(q), [x / sum(q) for x in q]


def worth(p, utility):
    """Return what class probabilities are worth: minus their entropy, or the utility of the best decision."""
    return -entropy(p) if utility is None else best_utility(p, utility)


def plans(joint, sample, prior, candidates, depth, costs, utility):
    """Yield first feature, expected worth at the end and expected cost of every plan."""
    if depth == 0 or not candidates:
        yield None, worth(prior, utility), 0.0
        return
    for i in candidates:
        rest = [j for j in candidates if j != i]
        found = list(answers(joint, sample, prior, i))
        options = [
            [
                (p * w, p * cost)
                for _, w, cost in plans(joint, with_value(sample, i, v), after, rest, depth - 1, costs, utility)
            ]
            for v, p, after in found
        ]
        for chosen in itertools.product(*options):
            yield i, math.fsum(w for w, _ in chosen), costs[i] + math.fsum(cost for _, cost in chosen)


def gains(joint, sample, prior, candidates, depth, costs, utility=None):
    """Return the largest expected gain per expected cost of the plans that begin with each candidate, by feature."""
    now, best = worth(prior, utility), {}
    for i, w, cost in plans(joint, sample, prior, candidates, depth, costs, utility):
        best[i] = max(best.get(i, -math.inf), (w - now) / cost)
    return best

"""The choice between learners and numbers of iterations on held-out rows, computed from given scores.

``paths[i][k]`` contains the scores [row, class] that learner i gives the held-out rows of part k after 0, 1, ...
iterations, up to the last one that the learner does by itself; ``y[k]`` and ``weight[k]`` belong to these rows.
"""

import numpy as np
from scipy.special import log_softmax


def measure(scores, y, weight, temperatures, share):
    """Return the weight of the misclassified rows, and the smoothed log loss at each temperature."""
    logs = [log_softmax(scores / own, axis=1) for own in temperatures]
    losses = [-(weight * (log_p[np.arange(len(y)), y] + share * log_p.mean(axis=1))).sum() for log_p in logs]
    return weight[scores.argmax(axis=1) != y].sum(), np.array(losses)


def follow(path, y, weight, iterations, patience, temperatures, share):
    """Evaluate a path at the given iterations, up to its end or until patience runs out."""
    found, path = [], path[: iterations[-1] + 1]
    for n in iterations:
        if n >= len(path):
            break
        found.append(measure(path[n], y, weight, temperatures, share))
        last_gains = [min(range(len(found)), key=lambda t, f=f: f(found[t])) for f in (first, lowest)]
        if patience is not None and n - iterations[max(last_gains)] >= patience:
            return found
    if len(path) - 1 not in iterations:
        found.append(measure(path[-1], y, weight, temperatures, share))
    return found


def first(measured):
    """Return the weight of the misclassified rows."""
    return measured[0]


def lowest(measured):
    """Return the log loss at the best temperature."""
    return measured[1].min()


def best(errors, log_losses, n_rows):
    """Return the learner and position of the least log loss among errors within a standard error of the least."""
    least = min(map(min, errors))
    limit = least + np.sqrt(max(least * (1 - least), 1 / n_rows) / n_rows)
    places = [(i, t) for i, own in enumerate(errors) for t, error in enumerate(own) if error <= limit]
    return min(places, key=lambda place: log_losses[place[0]][place[1]])


def choose(paths, y, weight, iterations, patience, temperatures):
    """Return learner, position, errors and log losses [learner, position], and the best position of each learner."""
    n_rows = sum(own.sum() for own in weight)
    parts = range(len(y))
    found = [
        [follow(own[k], y[k], weight[k], iterations, patience, temperatures, 1 / n_rows) for k in parts]
        for own in paths
    ]
    n_looks = max(len(run) for runs in found for run in runs)
    runs = [[run + [run[-1]] * (n_looks - len(run)) for run in own] for own in found]
    errors = [[sum(run[t][0] for run in own) / n_rows for t in range(n_looks)] for own in runs]
    losses = [[sum(run[t][1] for run in own).min() / n_rows for t in range(n_looks)] for own in runs]
    alone = [best([error], [loss], n_rows)[1] for error, loss in zip(errors, losses, strict=True)]
    return *best(errors, losses, n_rows), errors, losses, alone

"""What forests of dictionaries say, feature by feature, from nothing but sums.

A member has ``parents``, a list of lists, and ``gains``: {(child, level): {(values of parents, value): [of classes]}}.
"""

import math


def levels(member, row, absent=()):
    """Return {(child, level): gains of the classes} of all levels that a row reaches; absent features say nothing."""
    found = {}
    for child, parents in enumerate(member["parents"]):
        if row[child] is None or child in absent:
            continue
        for level in range(len(parents) + 1):
            given = tuple(row[j] for j in parents[:level])
            if None in given or set(parents[:level]) & set(absent):
                break
            if (*given, row[child]) not in member["gains"][child, level]:
                break
            found[child, level] = member["gains"][child, level][*given, row[child]]
    return found


def softmax(scores):
    """Return probabilities."""
    own = [math.exp(s) for s in scores]
    return [p / sum(own) for p in own]


def mixed(probabilities, doubt):
    """Return the mean of lists of probabilities, of which some rows are anybody's guess."""
    n, n_classes = len(probabilities), len(probabilities[0])
    return [(1 - doubt) * sum(p[c] for p in probabilities) / n + doubt / n_classes for c in range(n_classes)]


def predict(members, weights, log_prior, doubt, is_average, row, absent=()):
    """Return the probabilities of the classes; weights[member][child][level]."""
    groups = [[e] for e in range(len(members))] if is_average else [range(len(members))]
    found = []
    for group in groups:
        scores = list(log_prior)
        for e in group:
            for (child, level), gains in levels(members[e], row, absent).items():
                scores = [s + weights[e][child][level] * g for s, g in zip(scores, gains, strict=True)]
        found.append(softmax(scores))
    return mixed(found, doubt)


def log_mean(a, b):
    """Return the logarithmic mean."""
    return a if math.isclose(a, b, rel_tol=1e-14) else (a - b) / math.log(a / b)


def split(members, weights, log_prior, doubt, is_average, row):
    """Return {(member, child, level): what it adds to the log-probabilities of the classes}, and those of no features.

    Differences of probabilities are split by logarithmic means, member by member if they are averaged, and then those
    of the mixture are made differences of logarithms, again by a logarithmic mean.
    """
    classes, prior = range(len(log_prior)), softmax(log_prior)
    groups = [[e] for e in range(len(members))] if is_average else [range(len(members))]
    before = mixed([prior], doubt)
    after = predict(members, weights, log_prior, doubt, is_average, row)
    parts = {}
    for group in groups:
        terms = {
            (e, *place): [weights[e][place[0]][place[1]] * g for g in gains]
            for e in group
            for place, gains in levels(members[e], row).items()
        }
        p = softmax([log_prior[c] + sum(own[c] for own in terms.values()) for c in classes])
        mean = [log_mean(p[c], prior[c]) for c in classes]
        for key, own in terms.items():
            common = sum(m * g for m, g in zip(mean, own, strict=True)) / sum(mean)
            moved = [(1 - doubt) / len(groups) * mean[c] * (own[c] - common) for c in classes]
            parts[key] = [moved[c] / log_mean(after[c], before[c]) for c in classes]
    return parts, [math.log(p) for p in before]

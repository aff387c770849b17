"""Slow, obvious oracles of networks that are sums of terms. Loops, fractions and enumeration; nothing here knows
tanlearn."""

import itertools
import math
from fractions import Fraction

import numpy as np


def middle_ranks(weights):
    """Fraction of the weight before each value plus half of its own, exactly; of values without weight, of one each."""
    weights = [Fraction(w) for w in weights]
    if not sum(weights):
        weights = [Fraction(1) for _ in weights]
    return [(sum(weights[:k]) + w / 2) / sum(weights) for k, w in enumerate(weights)]


def ordered_groups(weights, n_groups):
    """Number of the group of each value: equal divisions of the ranks, without the empty ones."""
    if len(weights) <= n_groups:
        return list(range(len(weights)))
    part = [min(math.floor(rank * n_groups), n_groups - 1) for rank in middle_ranks(weights)]
    return [sorted(set(part)).index(k) for k in part]


def unordered_groups(weights, n_groups):
    """Most frequent values alone, in the order of their codes, and all others together."""
    if len(weights) <= n_groups:
        return list(range(len(weights)))
    frequent = sorted(range(len(weights)), key=lambda v: (-weights[v], v))[: n_groups - 1]
    alone = sorted(frequent)
    return [alone.index(v) if v in alone else n_groups - 1 for v in range(len(weights))]


def groups(weights, n_groups, is_ordered):
    """Groups of the values of a feature."""
    return ordered_groups(weights, n_groups) if is_ordered else unordered_groups(weights, n_groups)


def divisions(weights, sizes, is_ordered):
    """Different divisions of the values, from coarse to fine, without that into a single group."""
    found = []
    for size in sizes:
        division = groups(weights, size, is_ordered)
        if max(division) > 0 and division not in found:
            found.append(division)
    return found


def standardized(scores, weights):
    """Scores with mean 0 and variance 1."""
    total = sum(weights)
    if total == 0:
        return [0.0] * len(scores)
    mean = sum(w * z for w, z in zip(weights, scores, strict=True)) / total
    variance = sum(w * (z - mean) ** 2 for w, z in zip(weights, scores, strict=True)) / total
    return [(z - mean) / math.sqrt(variance) if variance > 1e-18 else 0.0 for z in scores]


def normal_scores(weights):
    """Normal quantiles of the middle ranks, standardized; ranks keep 0.001 away from 0 and 1."""
    from statistics import NormalDist

    ranks = [min(max(float(rank), 1e-3), 1 - 1e-3) for rank in middle_ranks(weights)]
    return standardized([NormalDist().inv_cdf(rank) for rank in ranks], weights)


def group_scores(weights, division):
    """Mean score of each group, standardized over the groups."""
    z = normal_scores(weights)
    members = [[v for v, g in enumerate(division) if g == k] for k in range(max(division) + 1)]
    of_group = [sum(weights[v] for v in group) for group in members]
    means = [
        sum(weights[v] * z[v] for v in group) / w if w else 0.0 for group, w in zip(members, of_group, strict=True)
    ]
    return standardized(means, of_group)


def value_weights(X, weight, n_states, i):
    """Weight of the rows with each value of a feature; -1 is missing."""
    return [sum(w for row, w in zip(X, weight, strict=True) if row[i] == v) for v in range(n_states[i])]


class Feature:
    """Divisions and scores of a feature for its edges, and divisions for its triples.

    If ``has_missing`` is set, the last value of an ordered feature means missing: it has no rank, its score is 0, and
    it is a group of its own.
    """

    def __init__(self, weights, is_ordered, has_missing=False):
        self.weights, self.is_ordered, self.n_states = weights, is_ordered, len(weights)
        self.n_unranked = int(is_ordered and has_missing)
        self.ranked = weights[: len(weights) - self.n_unranked]
        self.divisions = self.divide((2, 4, 8) if is_ordered else (32,))
        self.of_triples = self.divide((2, 4) if is_ordered else (8,))
        self.finest = self.divisions[-1] if self.divisions else [0] * len(weights)
        self.scores = [0.0] * (max(self.finest) + 1)
        if is_ordered:
            known = group_scores(self.ranked, self.finest[: len(self.ranked)])
            self.scores = known + [0.0] * self.n_unranked

    def divide(self, sizes):
        """Divisions of the ranked values, and the value without a rank by itself."""
        found = divisions(self.ranked, sizes, self.is_ordered)
        if not self.n_unranked:
            return found
        return [[*division, max(division) + 1] for division in found or [[0] * len(self.ranked)]]


def own_terms(feature):
    """Kinds and functions of a value, as lists over the values: indicators of groups, and smooth functions."""
    sizes = (4, 8, 16, 32, feature.n_states) if feature.is_ordered else (feature.n_states,)
    terms = [
        ("own groups", [float(g == k) for g in division])
        for division in feature.divide(sizes)
        for k in range(max(division) + 1)
    ]
    if feature.is_ordered and len(feature.ranked) > 2:
        z, nothing = normal_scores(feature.ranked), [0.0] * feature.n_unranked
        bend = [(one**2 - 1) / math.sqrt(2) for one in z]
        terms += [("own smooth", z + nothing), ("own smooth", bend + nothing)]
    return terms


def refined_together(divisions_of_features):
    """Divisions of several features, step by step; one with fewer divisions keeps its coarsest one first."""
    if not all(divisions_of_features):
        return []
    depth = max(map(len, divisions_of_features))
    return list(zip(*([one[0]] * (depth - len(one)) + one for one in divisions_of_features), strict=True))


def group_terms(kind, features, divisions_of_features):
    """Indicators of the groups of several features, as dictionaries over all combinations of values."""
    values = list(itertools.product(*(range(one.n_states) for one in features)))
    terms = []
    for step in refined_together(divisions_of_features):
        for groups in itertools.product(*(range(max(one) + 1) for one in step)):
            inside = {x: float(all(d[v] == g for d, v, g in zip(step, x, groups, strict=True))) for x in values}
            terms.append((kind, inside))
    return terms


def edge_terms(child, parent):
    """Functions of a pair of values, as dictionaries."""
    terms = group_terms("edge groups", (child, parent), (child.divisions, parent.divisions))
    if child.is_ordered and parent.is_ordered and child.divisions and parent.divisions:
        pairs = itertools.product(range(child.n_states), range(parent.n_states))
        product = {(x, z): child.scores[child.finest[x]] * parent.scores[parent.finest[z]] for x, z in pairs}
        terms.append(("edge smooth", product))
    return terms


def triple_terms(*features):
    """Functions of three values, as dictionaries."""
    return group_terms("triple groups", features, [one.of_triples for one in features])


def joint_terms(features, scope):
    """Functions of the values of an edge or a triple."""
    chosen = [features[i] for i in scope]
    return edge_terms(*chosen) if len(scope) == 2 else triple_terms(*chosen)


def triple_gain(X, y, weight, features, probabilities, scope, smoothing=4.0):
    """Gain of the groups of three features: sums over rows, one after the other."""
    if not all(features[i].of_triples for i in scope):
        return 0.0
    total = 0.0
    for c in range(len(probabilities[0])):
        g, h = {}, {}
        for row, label, w, p in zip(X, y, weight, probabilities, strict=True):
            if any(row[i] < 0 for i in scope):
                continue
            cell = tuple(features[i].of_triples[-1][row[i]] for i in scope)
            g[cell] = g.get(cell, 0.0) + w * (float(label == c) - p[c])
            h[cell] = h.get(cell, 0.0) + w * p[c] * (1 - p[c])
        total += sum((g[cell] ** 2 - h[cell]) / (h[cell] + smoothing) for cell in g)
    return total


def edge_gain(X, y, weight, features, probabilities, i, j, smoothing=4.0):
    """Gain of an edge from its groups, and from the product of scores: sums over rows, one after the other.

    An edge of a feature with a single group has no terms, and no gain.
    """
    if not (features[i].divisions and features[j].divisions):
        return 0.0, 0.0
    n_classes = len(probabilities[0])
    table = smooth = 0.0
    for c in range(n_classes):
        g, h = {}, {}
        g_smooth = h_smooth = 0.0
        for row, label, w, p in zip(X, y, weight, probabilities, strict=True):
            if row[i] < 0 or row[j] < 0:
                continue
            cell = features[i].finest[row[i]], features[j].finest[row[j]]
            residual, variance = w * (float(label == c) - p[c]), w * p[c] * (1 - p[c])
            g[cell] = g.get(cell, 0.0) + residual
            h[cell] = h.get(cell, 0.0) + variance
            z = features[i].scores[cell[0]] * features[j].scores[cell[1]]
            g_smooth += z * residual
            h_smooth += z**2 * variance
        table += sum((g[cell] ** 2 - h[cell]) / (h[cell] + smoothing) for cell in g)
        smooth += (g_smooth**2 - h_smooth) / (h_smooth + smoothing)
    return table, smooth


def penalized_loss(parameters, prior_size, X, y, weight, families, features, ridges):
    """Sum of weighted conditional losses plus half the weighted squared terms.

    ``parameters`` are the class prior, and the numbers of each term for the classes, in the order of the terms: own
    terms of all features, then those of each edge and triple.
    """
    total = 0.0
    rows, penalty = scored_rows(parameters, prior_size, X, families, features, ridges)
    for scores, label, w in zip(rows, y, weight, strict=True):
        top = max(scores)
        total += w * (top + math.log(sum(math.exp(s - top) for s in scores)) - scores[label])
    return total + penalty


def penalized_margin_loss(parameters, prior_size, X, y, weight, families, features, ridges, scale, kappa, eta):
    """Sum of weighted smooth hinges of the margins plus half the weighted squared terms, each times scale squared."""
    total = 0.0
    rows, penalty = scored_rows(parameters, prior_size, X, families, features, ridges)
    for scores, label, w in zip(rows, y, weight, strict=True):
        others = [eta * s for c, s in enumerate(scores) if c != label]
        z = scale * (scores[label] - log_sum(others) / eta)
        if z >= 1:
            h = 1.0
        elif z > 1 - 2 * kappa:
            h = 1 - (z - 1) ** 2 / (4 * kappa)
        else:
            h = z + kappa
        total -= w * h
    return total + scale**2 * penalty


def smoothed_frequencies(X, y, weight, n_classes, scope, divisions):
    """Frequency of each combination of groups in the rows of each class, with one more row: a dictionary per class.

    The features of the additional row are independent, with the frequencies of their groups in all rows plus an equal
    part of one row. Its class is uniformly distributed. Rows with a missing value do not count.
    """
    cells = list(itertools.product(*(range(max(one) + 1) for one in divisions)))
    known = [
        (tuple(one[row[i]] for i, one in zip(scope, divisions, strict=True)), label, w)
        for row, label, w in zip(X, y, weight, strict=True)
        if all(row[i] >= 0 for i in scope)
    ]
    total = sum(w for _, _, w in known)
    sides = []
    for k, one in enumerate(divisions):
        n = max(one) + 1
        sides.append([(sum(w for cell, _, w in known if cell[k] == g) + 1 / n) / (total + 1) for g in range(n)])
    found = []
    for c in range(n_classes):
        table = {}
        for cell in cells:
            independent = math.prod(side[g] for side, g in zip(sides, cell, strict=True))
            table[cell] = sum(w for own, label, w in known if (own, label) == (cell, c)) + independent / n_classes
        all_cells = sum(table.values())
        found.append({cell: value / all_cells for cell, value in table.items()})
    return found


def smoothed_distribution(X, y, weight, n_classes, features, edges):
    """Probability of each row and class of the tree of smoothed frequencies: a dictionary per class.

    P(group of a child | group of its parent) times P(value | group), for each class.
    """
    total = sum(weight)
    p_class = [(sum(w for label, w in zip(y, weight, strict=True) if label == c) + 1 / n_classes) / (total + 1)
               for c in range(n_classes)]  # fmt: skip
    own = [
        smoothed_frequencies(X, y, weight, n_classes, (i,), [list(range(one.n_states))])
        for i, one in enumerate(features)
    ]
    pairs = {
        child: (parent, smoothed_frequencies(X, y, weight, n_classes, (child, parent),
                                             [features[child].finest, features[parent].finest]))
        for child, parent in edges
    }  # fmt: skip
    found = []
    for c in range(n_classes):
        table = {}
        for x in itertools.product(*(range(one.n_states) for one in features)):
            p = p_class[c]
            for i, feature in enumerate(features):
                p *= own[i][c][x[i],]
                if i in pairs:
                    parent, pair = pairs[i]
                    g, h = feature.finest[x[i]], features[parent].finest[x[parent]]
                    p /= sum(own[i][c][v,] for v in range(feature.n_states) if feature.finest[v] == g)
                    p *= pair[c][g, h] / sum(value for (_, of_parent), value in pair[c].items() if of_parent == h)
            table[x] = p
        found.append(table)
    return found


def joint_log_probabilities(parameters, row_terms, n_classes, features, edges):
    """Log probability of each row and class, by enumeration: a dictionary of lists.

    ``row_terms`` are numbers of each value of all features, then of each pair of groups of each edge.
    """
    rows = list(itertools.product(*(range(one.n_states) for one in features)))
    ridges = dict.fromkeys(("own groups", "own smooth", "edge groups", "edge smooth"), 0.0)
    scores, _ = scored_rows(parameters, n_classes, rows, edges, features, ridges)
    starts = list(itertools.accumulate((one.n_states for one in features), initial=0))
    for x, one in zip(rows, scores, strict=True):
        shift = sum(row_terms[start + v] for start, v in zip(starts[:-1], x, strict=True))
        first = starts[-1]
        for i, j in edges:
            n_groups = max(features[j].finest) + 1
            shift += row_terms[first + features[i].finest[x[i]] * n_groups + features[j].finest[x[j]]]
            first += (max(features[i].finest) + 1) * n_groups
        one[:] = [s + shift for s in one]
    log_z = log_sum([s for one in scores for s in one])
    return {x: [s - log_z for s in one] for x, one in zip(rows, scores, strict=True)}


def mean_hybrid_loss(parameters, row_terms, n_classes, X, y, weight, edges, features, trade_off, gamma, eta):
    """Mean negative log joint probability of smoothed rows, plus ``trade_off`` times the mean smooth hinge of rows."""
    log_p = joint_log_probabilities(parameters, row_terms, n_classes, features, edges)
    total = 0.0
    for c, table in enumerate(smoothed_distribution(X, y, weight, n_classes, features, edges)):
        total -= sum(p * log_p[x][c] for x, p in table.items())
    ridges = dict.fromkeys(("own groups", "own smooth", "edge groups", "edge smooth"), 0.0)
    rows, _ = scored_rows(parameters, n_classes, X, edges, features, ridges)
    for scores, label, w in zip(rows, y, weight, strict=True):
        d = scores[label] - log_sum([eta * s for c, s in enumerate(scores) if c != label]) / eta
        total += w / sum(weight) * trade_off / eta * log_sum([0.0, eta * (gamma - d)])
    return total


def scored_rows(parameters, prior_size, X, families, features, ridges):
    """Scores of each row, and half the weighted squared terms."""
    n = prior_size
    terms = [((i,), kind, f) for i, one in enumerate(features) for kind, f in own_terms(one)]
    terms += [(scope, kind, f) for scope in families for kind, f in joint_terms(features, scope)]
    found = []
    for row in X:
        scores = list(parameters[:n])
        for t, (scope, _, f) in enumerate(terms):
            if any(row[k] < 0 for k in scope):
                continue
            factor = f[row[scope[0]]] if len(scope) == 1 else f[tuple(row[k] for k in scope)]
            if factor:
                for c in range(n):
                    scores[c] += factor * parameters[n + t * n + c]
        found.append(scores)
    penalty = 0.0
    for t, (_, kind, _) in enumerate(terms):
        penalty += ridges[kind] / 2 * sum(parameters[n + t * n + c] ** 2 for c in range(n))
    return found, penalty


def log_joint(row, prior, columns):
    """Sum of the cells of a complete or incomplete row; ``columns`` are (features, groups, cells[group]...[class])."""
    scores = [float(p) for p in prior]
    for features, group, cells in columns:
        if any(row[i] < 0 for i in features):
            continue
        cell = cells
        for i, own in zip(features, group, strict=True):
            cell = cell[own[row[i]]]
        scores = [s + float(v) for s, v in zip(scores, cell, strict=True)]
    return scores


def log_sum(values):
    """Logarithm of the sum of exponentials."""
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values)) if top > -math.inf else top


def marginal_log_joint(row, prior, columns, n_states):
    """Log joint of each class, summed over all completions of a row."""
    choices = [range(n) if v < 0 else [v] for v, n in zip(row, n_states, strict=True)]
    scores = [log_joint(x, prior, columns) for x in itertools.product(*choices)]
    return [log_sum([one[c] for one in scores]) for c in range(len(prior))]


def distribution(prior, columns, n_states):
    """Log normalizer, and the probability of every row and class, as an array (values of each feature, classes)."""
    scores = np.empty((*n_states, len(prior)))
    for x in itertools.product(*map(range, n_states)):
        scores[x] = log_joint(x, prior, columns)
    log_z = log_sum(scores.ravel().tolist())
    return log_z, np.exp(scores - log_z)


def is_forest_of_most_gain(gains, edges):
    """Whether no other spanning forest of positive gains is heavier, by a well-known implementation."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(gains)))
    graph.add_weighted_edges_from(
        (i, j, gains[i][j]) for i, j in itertools.combinations(range(len(gains)), 2) if gains[i][j] > 0
    )
    best = nx.maximum_spanning_tree(graph)
    weight = math.fsum(sorted(gains[i][j] for i, j in edges))
    return len(edges) == best.number_of_edges() and math.isclose(
        weight, math.fsum(sorted(w for _, _, w in best.edges(data="weight"))), rel_tol=1e-12, abs_tol=1e-12
    )

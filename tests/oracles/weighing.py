"""Weights of levels, features and families, from what is said of rows, by NumPy and plain minimisation alone.

Gains are [member, feature, level, row, class]. A problem is (scores [weight, row, class], base [row, class], classes,
weights of rows).
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax


def log_p(problem, weights):
    """Log-probabilities of the classes of every row."""
    scores, base, _, _ = problem
    return log_softmax(base + np.tensordot(weights, scores, 1), axis=1)


def log_loss(problems, logs):
    """Mean of the rows of all problems, given their log-probabilities."""
    own = [-logs[k][np.arange(len(y)), y] for k, (_, _, y, _) in enumerate(problems)]
    return np.average(np.concatenate(own), weights=np.concatenate([weight for *_, weight in problems]))


def fit(problem, start, ridge):
    """Minimise the mean log loss + ridge / 2 |weights - start|^2."""
    scores, _, y, weight = problem
    share, correct = weight / weight.sum(), np.eye(scores.shape[2])[y]

    def value(weights):
        return log_loss([problem], [log_p(problem, weights)]) + ridge / 2 * ((weights - start) ** 2).sum()

    def slope(weights):
        away = (np.exp(log_p(problem, weights)) - correct) * share[:, np.newaxis]
        return np.tensordot(scores, away, 2) + ridge * (weights - start)

    return minimize(value, start, jac=slope, method="BFGS", options={"gtol": 1e-8}).x


def choose(whole, parts, start, starts, ridges):
    """Fit with the ridge of the least left-out loss, infinite where none is below that of the starts.

    Weaker ridges than one that is 1 % worse than the best are not tried. Returns weights, those of the parts, their
    log-probabilities of what is left out, the ridge, and the losses by ridge.
    """
    outside = [own for _, own in parts]
    tried = [(np.inf, start, list(starts))]
    losses = [log_loss(outside, [log_p(own, at) for own, at in zip(outside, starts, strict=True)])]
    for ridge in ridges:
        fitted = [fit(inside, own, ridge) for (inside, _), own in zip(parts, starts, strict=True)]
        losses.append(log_loss(outside, [log_p(own, at) for own, at in zip(outside, fitted, strict=True)]))
        tried.append((ridge, None, fitted))
        if losses[-1] > 1.01 * min(losses):
            break
    ridge, weights, fitted = tried[int(np.argmin(losses))]
    weights = fit(whole, start, ridge) if weights is None else weights
    return weights, fitted, [log_p(own, at) for own, at in zip(outside, fitted, strict=True)], ridge, losses


def label_noise(p, weight, n_classes, doubts):
    """The likeliest share of rows of which nothing is known, given a row of either kind besides; rows weigh 1 each."""
    weight = weight / weight.mean()
    found = [(weight * np.log((1 - own) * p + own / n_classes)).sum() + np.log(own) + np.log(1 - own) for own in doubts]
    return doubts[int(np.argmax(found))], np.sort(found)


def group(scores, base, order, n_groups, start):
    """Return scores and base of the likeliest classes of a row, and of the remainder, linear in the weights.

    ``scores`` [weight, class] and ``base`` [class] of the row, its classes in ``order``, the likeliest first; the
    remainder is log sum exp of the scores of its classes, linearized where weights are ``start``.
    """
    if len(order) <= n_groups:
        return scores[:, order], base[order]
    own, rest = order[: n_groups - 1], order[n_groups - 1 :]
    total = base[rest] + start @ scores[:, rest]
    slope = scores[:, rest] @ np.exp(log_softmax(total))  # the derivative of log sum exp by the weights
    height = np.logaddexp.reduce(total) - start @ slope
    return np.column_stack([scores[:, own], slope]), np.append(base[own], height)


def weigh(outer, inner, y, weight, fold, rows, kind, ridges, n_groups, n_level_rows, n_family_rows):
    """Weigh levels, then features, then families.

    ``outer`` and each of ``inner`` (of every fold, or none) are gains and log-priors [row, class]; ``rows`` the ones to
    learn from; ``ridges`` those of levels, features and families. Returns the weights [member, feature, level], that
    of the prior, out-of-fold probabilities of the classes of the first rows, the ridges that were chosen, whether
    families are used, and by how much the closest choice was made.
    """
    n_members, d, n_levels, _, n_classes = outer[0].shape
    n_folds = fold.max() + 1

    def pair_up(make, own):
        """The whole, and inside and outside of every part; make(view, part) returns scores, base and classes."""
        whole = (*make(outer, n_folds, own), weight[own])
        parts = []
        for f in range(n_folds):
            here, view, of = fold[own] == f, *((inner[f], f) if inner else (outer, n_folds))
            inside = (*make(view, of, own[~here]), weight[own[~here]])
            parts.append((inside, (*make(outer, of, own[here]), weight[own[here]])))
        return whole, parts

    def of_levels(view, _, own):
        gains, prior = view[0][:, :, :, own], view[1][own]
        means = [gains[:, :, level].sum(axis=1).mean(axis=0) for level in range(n_levels)]
        return np.array([*means, prior]), np.zeros(prior.shape), y[own]

    start = np.array([1.0, *[0.5] * (n_levels - 1), 1.0])
    level_rows = rows[:n_level_rows]
    levels = choose(*pair_up(of_levels, level_rows), start, [start] * n_folds, ridges[0])
    level_of = [*levels[1], levels[0]]

    def weighted(view, part, own):
        gains = view[0][:, :, :, own]
        return sum(level_of[part][level] * gains[:, :, level] for level in range(n_levels))

    def of_features(view, part, own):
        return weighted(view, part, own).mean(axis=0), level_of[part][-1] * view[1][own], y[own]

    features = choose(*pair_up(of_features, rows), np.ones(d), [np.ones(d)] * n_folds, ridges[1])
    starts = [np.tile(own / n_members, n_members) for own in [*features[1], features[0]]]
    stages, judges = [levels, features], rows[:n_level_rows]

    def out_of_fold(of_parts, own):
        """Log-probabilities [row, class] of rows, by weights of families that were not fitted to them."""
        logs = []
        for r in own.tolist():
            f, at = fold[r], np.array([r])
            of = f if inner else n_folds
            scores = weighted(outer, of, at).reshape(n_members * d, n_classes)
            logs.append(log_softmax(of_parts[f] @ scores + level_of[of][-1] * outer[1][r]))
        return np.array(logs)

    def judge(of_parts):
        logs = out_of_fold(of_parts, judges)
        loss = -np.average(logs[np.arange(len(judges)), y[judges]], weights=weight[judges])
        return np.exp(logs), loss

    chosen, (p, loss), margin, is_by_family = starts[-1], judge(starts), np.inf, False
    if kind != "shared":
        likeliest = dict(zip(rows.tolist(), np.argsort(-out_of_fold(starts, rows), axis=1), strict=True))

        def of_families(view, part, own):
            scores = weighted(view, part, own).reshape(n_members * d, len(own), n_classes)
            base = level_of[part][-1] * view[1][own]
            found = [
                group(scores[:, k], base[k], likeliest[r], n_groups, starts[part]) for k, r in enumerate(own.tolist())
            ]
            places = [np.flatnonzero(likeliest[r] == y[r])[0] for r in own.tolist()]
            own_group = np.minimum(places, len(found[0][1]) - 1)
            return np.stack([of[0] for of in found], axis=1), np.array([of[1] for of in found]), own_group

        of_whole, of_parts = pair_up(of_families, rows[:n_family_rows])
        families = choose(of_whole, of_parts, starts[-1], starts[:-1], ridges[2])
        stages.append(families)
        if np.isfinite(families[3]):
            new_p, new_loss = judge(families[1])
            margin = abs(new_loss - loss)
            if new_loss < loss:
                chosen, p, is_by_family = families[0], new_p, True
    return {
        "weights": chosen.reshape(n_members, d, 1) * levels[0][:-1],
        "of_prior": levels[0][-1],
        "p": p,
        "ridges": [own[3] for own in stages],
        "is_by_family": is_by_family,
        "margin": min(margin, *(closeness(own[4]) for own in stages)),
    }


def closeness(losses):
    """How little would have changed which loss is the least, or whether the search ended there."""
    to_end = [abs(own - 1.01 * min(losses[: k + 1])) for k, own in enumerate(losses) if k]
    first, second = sorted([*losses, np.inf])[:2]
    return min([second - first, *to_end])

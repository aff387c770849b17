"""Gradient k-trees as slow, obvious loops: dictionaries of terms, one sample at a time. Nothing here knows tanlearn."""

import itertools
import math

import numpy as np


def row_of(sample, child, parents):
    """Return the values that a term is of, or None if the sample misses one (-1)."""
    values = (int(sample[child]), *(int(sample[j]) for j in parents if j >= 0))
    return None if -1 in values else values


def terms_of(choice):
    """Return the sets of parents whose terms a choice of parents stands for: all its subsets."""
    parents = [j for j in choice if j >= 0]
    return [subset for size in range(len(parents) + 1) for subset in itertools.combinations(parents, size)]


def feature_sum(sample, child, choice, terms, n_classes):
    """Return what a feature adds to the scores of a sample."""
    total = np.zeros(n_classes)
    for subset in terms_of(choice):
        row = row_of(sample, child, subset)
        if row is not None:
            total += terms[child, subset].get(row, np.zeros(n_classes))
    return total


def rounded(sums, step, most):
    """Return sums less their largest, as multiples of a step, at most so many below zero."""
    sums = np.asarray(sums) - max(sums)
    return -np.minimum(np.rint(-sums / step), most) * step


def scores(sample, choices, prior, terms, rounding=None):
    """Return the scores of a sample under a choice of parents for every feature."""
    parts = [np.array(prior, float)]
    parts += [feature_sum(sample, i, choice, terms, len(prior)) for i, choice in enumerate(choices)]
    return sum(parts if rounding is None else [rounded(part, *rounding) for part in parts])


def conditional_nll(values, label):
    """Return -log p(label) of scores, and its gradient."""
    p = np.exp(values - max(values))
    p /= p.sum()
    gradient = p.copy()
    gradient[label] -= 1
    return -math.log(p[label]), gradient


def closes_cycle(child, parents, chosen):
    """Return whether a feature with these parents would be among its own ancestors."""
    ahead, seen = list(parents), set()
    while ahead:
        j = ahead.pop()
        if j == child:
            return True
        if j not in seen:
            seen.add(j)
            ahead += [k for k in chosen.get(j, ()) if k >= 0]
    return False


def draw_acyclic(weights, candidates):
    """Return a choice for every feature: those with the largest weight first, each of what closes no cycle.

    ``weights[i][k]`` is that of ``candidates[i][k]``, a tuple of parents.
    """
    chosen = {}
    for i in sorted(range(len(weights)), key=lambda i: -max(weights[i])):
        allowed = [k for k, parents in enumerate(candidates[i]) if not closes_cycle(i, parents, chosen)]
        chosen[i] = candidates[i][max(allowed, key=lambda k: weights[i][k])]
    return [chosen[i] for i in range(len(weights))]


#: The logits take a step in the first of so many steps, at a rate that is larger by this factor.
STRIDE, FASTER = 4, 3


class Training:
    """A training in double precision; ``terms[feature, parents][values]`` are numbers of classes."""

    def __init__(self, X, y, weight, candidates, prior, terms, rounding=None, loss=conditional_nll):
        self.X, self.y, self.weight, self.candidates, self.rounding = X, y, weight, candidates, rounding
        self.loss = loss
        self.prior, self.terms = np.array(prior, float), terms
        self.squares = {name: {row: np.zeros(len(prior)) for row in term} for name, term in terms.items()}
        self.touched = {name: dict.fromkeys(term, 0) for name, term in terms.items()}
        self.phi = [np.zeros(len(row)) for row in candidates]
        self.moments = [np.zeros_like(self.prior), *self.phi], [np.zeros_like(self.prior), *self.phi]
        self.moments = tuple([array.copy() for array in side] for side in self.moments)
        self.t = self.t_of_structure = 0

    def step(self, batch, uniform, draw, rates, temperature, decay=0.99, beta1=0.9, beta2=0.999, epsilon=1e-7):
        """Do one step and return the mean loss; ``uniform[i]`` are the numbers of a feature's candidates."""
        self.t += 1
        weights = []
        for phi, u in zip(self.phi, uniform, strict=True):
            log_p = phi - np.log(np.exp(phi).sum())
            weights.append(log_p - np.log(-np.log(np.asarray(u) + 2.0**-25)))
        if draw == "acyclic":
            choices = draw_acyclic(weights, self.candidates)
        else:
            choices = [row[int(np.argmax(w))] for row, w in zip(self.candidates, weights, strict=True)]
        total, d_prior, d_rows = 0.0, np.zeros_like(self.prior), {}
        d_choice = [np.zeros(len(row)) for row in self.candidates]
        for n in batch:
            share = self.weight[n] / len(batch)
            value, gradient = self.loss(scores(self.X[n], choices, self.prior, self.terms, self.rounding), self.y[n])
            gradient = np.array(gradient)
            total, gradient = total + share * value, gradient * share
            d_prior += gradient
            for i, choice in enumerate(choices):
                for subset in terms_of(choice):
                    row = row_of(self.X[n], i, subset)
                    if row is not None:
                        place = (i, subset), row
                        d_rows[place] = d_rows.get(place, 0) + gradient
                for k, other in enumerate(self.candidates[i]):
                    d_choice[i][k] += feature_sum(self.X[n], i, other, self.terms, len(self.prior)) @ gradient
        for (name, row), gradient in d_rows.items():
            gap, self.touched[name][row] = self.t - self.touched[name][row], self.t
            square = decay**gap * self.squares[name][row] + (1 - decay) * gradient**2
            self.squares[name][row] = square
            self.terms[name][row] = self.terms[name][row] - rates[0] * gradient / (
                np.sqrt(square / (1 - decay**self.t)) + epsilon
            )
        gradients = [d_prior]
        for w, d in zip(weights, d_choice, strict=True):
            s = np.exp((w - w.max()) / temperature)
            s /= s.sum()
            gradients.append(s * (d - s @ d) / temperature)
        is_structure_step = (self.t - 1) % STRIDE == 0
        self.t_of_structure += is_structure_step
        for place, gradient in enumerate(gradients if is_structure_step else gradients[:1]):
            m, v = (side[place] for side in self.moments)
            m[:] = beta1 * m + (1 - beta1) * gradient
            v[:] = beta2 * v + (1 - beta2) * gradient**2
            t = self.t_of_structure if place else self.t
            rate = (FASTER * rates[1] if place else rates[0]) * math.sqrt(1 - beta2**t) / (1 - beta1**t)
            target = self.phi[place - 1] if place else self.prior
            target -= rate * m / (np.sqrt(v) + epsilon)
        return total

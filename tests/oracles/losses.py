"""Slow, obvious losses of one row of scores, and a slow Adam. Plain Python floats; nothing from tanlearn."""

import math


def relative_to_largest(scores):
    """Shift a row by its largest score; a row of log zeros is a tie, so it becomes a row of zeros."""
    largest = max(scores)
    return [0.0 if largest == -math.inf else s - largest for s in scores]


def softened_maximum(values, eta):
    """Return (1/eta) log sum exp(eta v)."""
    largest = max(values)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(math.fsum(math.exp(eta * (v - largest)) for v in values)) / eta


def softmax(values, eta=1.0):
    """Return exp(eta v) / sum exp(eta v)."""
    powers = [math.exp(eta * v) for v in relative_to_largest(values)]
    return [p / math.fsum(powers) for p in powers]


def others(values, label):
    return [v for c, v in enumerate(values) if c != label]


def margin(scores, label, eta):
    """Return d = s_y - softened maximum of the others; a shift of all scores does not change it."""
    scores = relative_to_largest([float(s) for s in scores])
    return scores[label] - softened_maximum(others(scores, label), eta)


def d_margin(scores, label, eta):
    """Return the gradient of d: 1 for the class itself, minus the softmax of the others."""
    weights = softmax(others([float(s) for s in scores], label), eta)
    weights.insert(label, -1.0)
    return [-w for w in weights]


def joint_nll(scores, label):
    gradient = [0.0] * len(scores)
    gradient[label] = -1.0
    return -float(scores[label]), gradient


def conditional_nll(scores, label):
    shifted = relative_to_largest([float(s) for s in scores])
    value = -shifted[label] + math.log(math.fsum(math.exp(s) for s in shifted))
    gradient = softmax(scores)
    gradient[label] -= 1.0
    return value, gradient


def hinge_margin(scores, label, gamma, eta):
    value = gamma - margin(scores, label, eta)
    if value <= 0.0:
        return 0.0, [0.0] * len(scores)
    return value, [-g for g in d_margin(scores, label, eta)]


def smooth_hinge(z, kappa):
    """Return h(z) and its derivative: maximum margin, eq. 5."""
    if z <= 1 - 2 * kappa:
        return z + kappa, 1.0
    if z < 1:
        return 1 - (z - 1) ** 2 / (4 * kappa), -(z - 1) / (2 * kappa)
    return 1.0, 0.0


def smooth_margin(scores, label, scale, kappa, eta):
    h, slope = smooth_hinge(scale * margin(scores, label, eta), kappa)
    return -h, [-slope * scale * g for g in d_margin(scores, label, eta)]


def hybrid(scores, label, trade_off, gamma, eta):
    nll, d_nll = joint_nll(scores, label)
    hinge, d_hinge = hinge_margin(scores, label, gamma, eta)
    value = nll + trade_off * hinge if trade_off else nll
    return value, [a + trade_off * b for a, b in zip(d_nll, d_hinge, strict=True)]


def soft_hybrid(scores, label, trade_off, gamma, eta):
    """Return the hybrid loss with log(1 + exp) in place of the hinge, at the sharpness of the margin."""
    nll, d_nll = joint_nll(scores, label)
    if not trade_off:
        return nll, d_nll
    shortfall = eta * (gamma - margin(scores, label, eta))
    if shortfall == math.inf:
        soft, share = math.inf, 1.0
    else:
        soft = softened_maximum([0.0, shortfall], 1.0)
        share = math.exp(shortfall - soft)
    value = nll + trade_off * soft / eta
    return value, [a - trade_off * share * b for a, b in zip(d_nll, d_margin(scores, label, eta), strict=True)]


def expected_error(scores, label):
    """Return one minus the probability of the true class, the loss that the tests bring along."""
    p = softmax(scores)
    return 1.0 - p[label], [-p[label] * ((c == label) - p[c]) for c in range(len(scores))]


def adam(x, gradients, learning_rate, beta1, beta2, epsilon):
    """Return x after one step per gradient, as TensorFlow documents it."""
    x = [float(value) for value in x]
    m, v = [0.0] * len(x), [0.0] * len(x)
    for t, gradient in enumerate(gradients, start=1):
        step = learning_rate * math.sqrt(1 - beta2**t) / (1 - beta1**t)
        for j, g in enumerate(map(float, gradient)):
            m[j] = beta1 * m[j] + (1 - beta1) * g
            v[j] = beta2 * v[j] + (1 - beta2) * g * g
            x[j] -= step * m[j] / (math.sqrt(v[j]) + epsilon)
    return x, m, v

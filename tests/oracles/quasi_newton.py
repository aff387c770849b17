"""A slow, obvious L-BFGS direction from the full inverse curvature; nothing from tanlearn."""

import numpy as np


def direction(gradient, steps, changes):
    """Return minus the inverse curvature times the gradient (n,), from steps and changes of the gradient (k, n).

    The inverse curvature starts as a multiple of the identity, and each step updates it by the formula of BFGS
    (Nocedal and Wright, equations 6.17 and 7.20).
    """
    n = len(gradient)
    inverse = np.eye(n)
    if len(steps):
        inverse *= (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for step, change in zip(steps, changes, strict=True):
        rho = 1 / (change @ step)
        left = np.eye(n) - rho * np.outer(step, change)
        inverse = left @ inverse @ left.T + rho * np.outer(step, step)
    return -inverse @ gradient

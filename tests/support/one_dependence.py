"""Tables of one-dependence estimators, and the rows that samples pick, for tests of kernels."""

import numpy as np


def random_problem(n_classes, n=5, d=18, n_rows=4):
    """More features than are summed at once, log zeros, estimators without a say, and a sample without any."""
    rng = np.random.default_rng(n_classes)
    log_parent = rng.uniform(-5, 0, (n_rows, n_classes))
    log_child = rng.uniform(-5, 0, (n_rows, n_rows, n_classes))
    log_parent[0, 0] = log_child[1, 2, 1] = -np.inf
    parents = rng.integers(-1, n_rows, (6, n))
    parents[:, -1] = -1
    return parents, rng.integers(0, n_rows, (n, d)), log_parent.astype(np.float32), log_child.astype(np.float32)

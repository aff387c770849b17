"""Quantized neural networks, trained as in the paper, for the comparison of its figures 3, 4 and 7.

Every choice that the paper does not print is that of its published code (github.com/wroth8/bnc): kernels of 3 x 3 with
zero padding, real weights clipped to [-1, 1] after every step, moving means of batch normalization with momentum 0.9,
and no incomplete batches. Where code and paper differ (learning rates, their decay), the paper is followed. There are
two differences: nets whose width rounds to 0 are left out, where the code takes one unit, and Adam is optax's, whose
epsilon is 1e-8.

``sizes`` computes budgets and widths, ``quantizers`` equations 12 to 14, ``network`` scores, and ``training`` trains
several nets at once. ``plan`` selects the nets, ``ranks`` supports its selection, and ``runs`` is the command.
"""

import os

# With threads, sums depend on their order, and the other cores are in use. XLA reads this once.
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {os.environ.get('XLA_FLAGS', '')}"

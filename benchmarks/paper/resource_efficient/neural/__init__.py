"""Quantised neural networks as the paper trains them, beside which its figures 3, 4 and 7 put Bayesian networks.

Every choice that the paper does not print is that of its published code (github.com/wroth8/bnc): kernels of 3 x 3 with
zeros around the image, real weights clipped to [-1, 1] after every step, moving means of batch normalisation that keep
0.9 of themselves, no rows in batches that would not be full. Where code and paper differ (learning rates, their decay),
the paper is followed. Not as there: nets whose width rounds to 0 are left out, where the code takes one unit, and Adam
is optax's, whose epsilon is 1e-8.

``sizes`` knows budgets and widths, ``quantisers`` equations 12 to 14, ``network`` what a net computes, ``training`` how
many are trained side by side, ``plan`` which are, by ``ranks``, and ``runs`` is the command.
"""

import os

# Threads add up in an order of their own, and other commands have work for the cores. XLA reads this once.
os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=false {os.environ.get('XLA_FLAGS', '')}"

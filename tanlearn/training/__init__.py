"""Learning by gradient: losses, their objective, gradient TAN on the CPU and on CUDA devices, and k-trees.

In: encoded rows, candidates, a loss, settings, random numbers. Out: the outcome of a training, a structure and tables
with their history, the same after an interruption.
"""

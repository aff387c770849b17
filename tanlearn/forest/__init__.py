"""Forests of random k-dependence networks, weighted by their out-of-fold predictions.

The input is encoded rows, a mask of the ordered features, settings and random numbers. The output is a forest that
scores rows and can be interpreted, and its arrays for a file.
"""

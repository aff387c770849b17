"""Forests of random k-dependence networks, weighted by their out-of-fold predictions.

The input consists of encoded rows, a mask of the ordered features, settings and random numbers. The output is a forest
that scores rows, can be interpreted, and can be stored as arrays.
"""

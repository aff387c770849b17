"""Forests of random k-dependence networks: members, what they say of rows that they have not seen, and weights.

In: encoded rows, which codes have an order, settings, random numbers. Out: a forest that scores rows and can be
read, and its arrays for a file.
"""

"""Networks of terms: log parameters are sums of terms, from coarse to fine, and edges are selected by gain.

The input consists of encoded rows. The output is a network, with ridges and a number of parents that were selected on
held-out rows. :func:`~tanlearn.terms.learning.learn_terms` is the entry point.
"""

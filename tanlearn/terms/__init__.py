"""Networks whose log parameters are sums of terms, from coarse to fine, with edges by gain.

Input: encoded rows. Output: a network, with the ridges and the number of parents that held-out rows selected.
:func:`~tanlearn.terms.learning.learn_terms` is the entry point.
"""

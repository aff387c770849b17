"""Networks whose log parameters are sums of terms, from coarse to fine, with edges by gain.

``learning.learn_terms`` selects the number of parents and the ridges on held-out rows (``search``), with the edges of
largest gain (``gains``). It trains the terms (``basis``, ``fitting``), and then the likelihood of the rows
(``row_likelihood``).
"""

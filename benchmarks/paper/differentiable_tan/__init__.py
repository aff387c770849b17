"""W. Roth, F. Pernkopf: Differentiable TAN structure learning for Bayesian network classifiers. PGM 2020."""

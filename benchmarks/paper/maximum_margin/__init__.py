"""F. Pernkopf, M. Wohlmayr, S. Tschiatschek: Maximum margin Bayesian network classifiers. IEEE TPAMI 34(3), 2012."""

"""F. Pernkopf, J. Bilmes: Order-based discriminative structure learning for Bayesian network classifiers, 2008."""

"""W. Roth, G. Schindler, H. Froening, F. Pernkopf: On resource-efficient Bayesian network classifiers. ICPR 2020."""

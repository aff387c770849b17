"""W. Roth, G. Schindler, H. Fröning, F. Pernkopf: On resource-efficient Bayesian network classifiers. ICPR 2020."""

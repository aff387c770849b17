"""Models of data without classes: imputation, densities, outliers, and drift between data sets.

The class of the network is latent: it is not a column of the data. The number of latent classes is selected on held-out
values. Rows are encoded, counted and marginalized by the same packages as for classifiers.
"""

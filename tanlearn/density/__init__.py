"""Models of data without a class: imputation, densities, outliers, and drift between data sets.

The class of the network is latent, that is, not a column of the data. The number of its values is selected on held-out
values. Rows are encoded, counted and marginalized by the same packages as for classifiers.
"""

"""Models of tables without a class: imputation, densities, outliers, and drift between tables.

The class of the network is latent: it is not in the table, and its number of values is selected on held-out values.
Rows are encoded, counted and marginalized by the same packages as those of classifiers.
"""

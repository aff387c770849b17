"""Bayesian-network classifiers: structures, CPTs, counts and inference.

The input is codes, a structure and the log probabilities of its CPTs. The output is scores of rows and classes, with
missing values marginalized, counts, and sampled, completed and explained rows. Learning is in other packages.
"""

"""Hyperparameter search: random search, populations of trainings, size paths and Pareto fronts.

A search gets an estimator, settings to vary, and raw or encoded rows. It returns the best classifier with all results.
An interrupted search resumes from a checkpoint.
"""

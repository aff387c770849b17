"""Hyperparameter search: random search, concurrent trainings, size paths and Pareto fronts.

The input of a search consists of an estimator, settings to vary, and rows. The output consists of the best classifiers
and all results. An interrupted search can be resumed from a checkpoint.
"""

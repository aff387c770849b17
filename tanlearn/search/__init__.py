"""Hyperparameter search: random search, populations of trainings, size paths and Pareto fronts.

Input: an estimator, settings to vary, and raw or encoded rows. Output: the best classifier with all results. An
interrupted search resumes from a checkpoint.
"""

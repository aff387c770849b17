"""Many trainings: random search, populations, paths of sizes, and what a budget can choose from.

In: an estimator and what to vary, raw or encoded rows. Out: the best classifier with all results, kept in a checkpoint.
"""

"""Learning from partitions of tables where they are: what is counted is summed up from worker to worker.

In: Dask's DataFrames, Arrays and Bags, on one machine or on many. Out: fitted classifiers of this process, and
predictions that are computed block by block when they are asked for.
"""

from tanlearn.dask.estimators import AODEClassifier, BayesForestClassifier, BayesNetClassifier, NaiveBayesClassifier

__all__ = ["AODEClassifier", "BayesForestClassifier", "BayesNetClassifier", "NaiveBayesClassifier"]

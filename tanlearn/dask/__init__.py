"""Learning from Dask's collections: DataFrames, Arrays and Bags whose partitions lie on one machine or on many.

In come collections, out come fitted classifiers of this process: what is counted, or added up of gradients, is so where
the partitions are, and summed up from worker to worker. Without a cluster, Dask's own threads do the work.
"""

from tanlearn.dask.estimators import AODEClassifier, BayesForestClassifier, BayesNetClassifier, NaiveBayesClassifier

__all__ = ["AODEClassifier", "BayesForestClassifier", "BayesNetClassifier", "NaiveBayesClassifier"]

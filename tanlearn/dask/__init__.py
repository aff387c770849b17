"""Training on partitions of Dask collections: workers count their partitions, and the counts are merged.

The input is a Dask DataFrame, Array or Bag, on one or several machines. Fitted classifiers stay in the client process.
Predictions are computed lazily, block by block.
"""

from tanlearn.dask.estimators import AODEClassifier, BayesForestClassifier, BayesNetClassifier, NaiveBayesClassifier

__all__ = ["AODEClassifier", "BayesForestClassifier", "BayesNetClassifier", "NaiveBayesClassifier"]

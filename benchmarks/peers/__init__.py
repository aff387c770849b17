"""Naive Bayes and Chow-Liu TAN beside scikit-learn, pyAgrum and pgmpy."""

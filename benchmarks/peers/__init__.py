"""Naive Bayes, Chow-Liu TAN and hill climbing, compared with scikit-learn, pyAgrum and pgmpy."""

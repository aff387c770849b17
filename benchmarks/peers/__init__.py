"""Naive Bayes, Chow-Liu TAN and hill climbing beside scikit-learn, pyAgrum and pgmpy."""

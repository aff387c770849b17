"""Fitted models of encoded data: CPTs, inference that marginalizes missing values, sampling, completion, explanations.

Every classifier predicts with a :class:`~tanlearn.models.model.Model`. Learning is in other packages.
"""

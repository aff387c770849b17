"""Fitted models over codes: CPTs, inference with missing values marginalized, sampling, completion and explanations.

Every classifier predicts with a :class:`~tanlearn.models.model.Model`. Learning is in other packages.
"""

"""Differential privacy of counts: budgets of privacy loss, and noise of exact samplers.

Input: exact counts of rows in declared categories and cut points. Output: counts with noise, for ``from_counts``.
"""

"""Differential privacy of counts: limits of the privacy loss (budgets), and noise from exact samplers.

The input consists of exact counts of rows with declared categories and cut points. The output consists of counts with
noise, which are passed to ``from_counts``.
"""

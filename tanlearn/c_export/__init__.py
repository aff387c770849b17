"""Classifiers of a few bits as C99 without multiplications.

In: a fitted classifier with integer tables, its encoder, rows to check against. Out: one header, and a program that
checks its sums.
"""

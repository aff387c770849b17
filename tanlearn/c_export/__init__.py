"""Export of integer classifiers, boosted terms and forests as C99 without floating point.

A fitted classifier with integer CPTs and its encoder are written as one header. An optional test program compares its
results on given rows with the results in Python.
"""

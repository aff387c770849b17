"""Export of integer classifiers and boosted terms as C99 without multiplications.

A fitted classifier with integer CPTs and its encoder are written as one header. An optional test program compares its
results on given rows with those of Python.
"""

"""Export of integer classifiers, boosted terms and forests as C99 without floating point.

A fitted classifier and its encoder are written as one header. An optional test program compares the results of the C
code on given rows with the results in Python.
"""

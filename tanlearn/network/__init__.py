"""Bayesian-network classifiers as objects: structures, tables, counts, and what a network answers.

In: codes, a structure and the cells of its tables. Out: scores of rows and classes, missing features summed out;
counts; drawn, completed and explained rows. Nothing is learnt here.
"""

"""Gradient training: losses, their objective, gradient TAN on CPU and CUDA, and gradient k-trees.

Input: encoded rows, candidate parent sets, a loss, settings and a random generator. Output: a structure, its CPTs and
the training history. A training that is resumed from its checkpoint gives the same output as an uninterrupted one.
"""

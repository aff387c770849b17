"""Gradient training: losses, their objective, gradient TAN on CPU and CUDA, and gradient k-trees.

The input consists of encoded rows, candidate parent sets, a loss, settings and a random generator. The output consists
of a structure, its CPTs and the training history. A training that is resumed from its checkpoint gives the same output
as an uninterrupted training.
"""

"""Structures of networks: parents of each feature, candidate parents, orderings, and the layout of CPTs.

A structure is an array of parents. Its layout determines the position of each CPT entry in one flat vector.
"""

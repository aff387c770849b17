"""Sufficient statistics of encoded rows: counts of pairs, families and contexts, and information computed from them.

Counts of batches can be added. With integer weights, the sum does not depend on how rows are divided into batches.
"""

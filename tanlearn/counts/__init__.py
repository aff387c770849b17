"""Sufficient statistics of encoded rows: counts of pairs, families and contexts, and information computed from them.

Counts of batches can be added. Counts of rows with integer weights do not depend on the partition of the rows.
"""

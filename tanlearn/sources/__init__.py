"""Sources of rows: arrays, lists, data frames, Arrow tables and files, which are read as columns or in batches.

The result is a table of typed columns with masks of missing values, and class labels. Packages above convert them to
codes.
"""

"""Encoding of columns: categories, cut points and codes, with classes, weights and splits.

Input: columns of :mod:`tanlearn.sources`, with class labels. Output:
:class:`~tanlearn.encoding.encoded_data.EncodedData`, a feature-major code matrix, and the fitted
:class:`~tanlearn.encoding.table_encoder.TableEncoder`.
"""

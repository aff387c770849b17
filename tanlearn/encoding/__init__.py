"""Encoding of columns: categories, cut points and codes, with classes, weights and splits.

The input consists of columns from :mod:`tanlearn.sources`, with class labels. The output consists of
:class:`~tanlearn.encoding.encoded_data.EncodedData`, a feature-major code matrix, and the fitted
:class:`~tanlearn.encoding.table_encoder.TableEncoder`.
"""

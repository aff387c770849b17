"""Data preparation: raw data to integer codes, with classes, weights and splits.

Input: arrays, lists and frames of raw values, with class labels. Output:
:class:`~tanlearn.data.encoded_data.EncodedData`, a feature-major code matrix, and the fitted
:class:`~tanlearn.data.table_encoder.TableEncoder`.
"""

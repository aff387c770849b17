"""From a table of anything to codes: columns, categories, cuts, classes, weights and splits.

In: arrays, lists and frames of raw values, and classes. Out: :class:`~tanlearn.data.encoded_data.EncodedData`, whose
codes lie feature by feature, and the fitted :class:`~tanlearn.data.table_encoder.TableEncoder`.
"""

"""Reading and writing of models, networks, summaries and checkpoints.

Models, summaries and checkpoints are stored as archives without pickle, and networks as BIF or XMLBIF. The package also
computes fingerprints and JSON descriptions of fitted models. Damaged or forged files are rejected.
"""

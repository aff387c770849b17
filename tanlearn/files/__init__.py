"""Models and networks in files, and what is told of them.

In: fitted models, networks, summaries of tables, checkpoints as plain values. Out: archives without pickle, BIF and
XMLBIF, fingerprints, descriptions for JSON; and all of them read back, damaged ones refused.
"""

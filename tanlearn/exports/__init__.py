"""Export of fitted classifiers to SQL, JavaScript and ONNX.

An exported classifier takes raw values, encodes them with the same comparisons as in Python, and computes the same log
joint.
"""

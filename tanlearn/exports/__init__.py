"""Export of fitted classifiers to SQL, JavaScript and ONNX.

Exported classifiers read raw values, encode them with the same comparisons as in Python, and compute the same log
joint.
"""

"""CUDA text (``*.cu``), and the functions that start it: twins of the kernels of this package's parent.

In: arrays on CUDA. Out: arrays on CUDA. Only :mod:`tanlearn.kernels._cuda` meets CuPy.
"""

"""CUDA text (``*.cu``), and the functions that start it: twins of the kernels of this package's parent.

In: arrays on the device. Out: arrays on the device. Only :mod:`tanlearn.kernels._cuda` meets CuPy.
"""

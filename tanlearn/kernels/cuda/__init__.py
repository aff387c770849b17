"""CUDA text (``*.cu``), and functions that launch it: CUDA versions of the kernels of the parent package.

Arguments and results are arrays on a CUDA device. CuPy is used only through :mod:`tanlearn.kernels._cuda`.
"""

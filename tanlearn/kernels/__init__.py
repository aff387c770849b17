"""Inner loops, compiled by Numba for the CPU, with CUDA versions of the same names in ``cuda``.

The inputs are NumPy arrays that the caller has validated, cast and allocated. Results are written in place to the last
arguments, or returned as one number. Kernels use only arrays and numbers; they have no access to column names or
objects, and raise no exceptions.
"""

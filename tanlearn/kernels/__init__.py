"""The loops: compiled by Numba, and as CUDA text with twins of the same names in ``cuda``.

In: NumPy arrays that the caller has checked, cast and allocated. Out: the last arrays, written in place, or one number.
A kernel knows arrays alone: no names of columns, no objects, no errors to raise.
"""

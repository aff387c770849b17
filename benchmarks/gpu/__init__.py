"""Populations of gradient TANs on an NVIDIA device: bytes and times of steps, and comparison of errors."""

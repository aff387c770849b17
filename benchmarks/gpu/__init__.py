"""Populations of gradient TANs on an NVIDIA device: what a step must move, what it takes, and whether errors agree."""

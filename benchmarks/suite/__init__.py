"""Benchmarks for asv: run them with `make bench`."""

"""Classifiers in C on microcontrollers: bytes, nanoseconds and errors."""

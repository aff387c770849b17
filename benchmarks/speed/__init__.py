"""Seconds and memory of steps, trainings, imports, first fits and streams."""

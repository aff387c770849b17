"""Tests; a regular package, because baycomp installs another one with this name."""

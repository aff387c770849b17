"""System calls that fail in the module that writes files, and nowhere else: Numba, for one, renames files too."""

import os

from tanlearn.files import regular_files


class _System:
    """The module ``os`` with some other functions."""

    def __init__(self, functions):
        vars(self).update(functions)

    def __getattr__(self, name):
        return getattr(os, name)


def patch_system(monkeypatch, **functions):
    """Replace functions of ``os``, as that module sees it."""
    earlier = vars(regular_files.os) if isinstance(regular_files.os, _System) else {}
    monkeypatch.setattr(regular_files, "os", _System({**earlier, **functions}))

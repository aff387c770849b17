"""Commands of benchmarks/paper as modules."""

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "paper"


@contextmanager
def loaded(name):
    """Yield a command and what to patch it with; the siblings that it imports by name are forgotten afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module, patch
        for sibling in FOLDER.glob("*.py"):
            sys.modules.pop(sibling.stem, None)

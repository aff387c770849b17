"""Bayesian network classifiers trained by likelihood, margin and gradient, in NumPy and Numba.

Importing the package is cheap. Numba, SciPy and scikit-learn are imported when the first public name is used.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from tanlearn._public import *  # noqa: F403
    from tanlearn._public import __all__ as __all__


def __getattr__(name: str) -> Any:
    if not (name.startswith("__") and name != "__all__"):  # Python looks up other dunder names in any module
        public = import_module("tanlearn._public")
        if name in ("__all__", *public.__all__):
            return globals().setdefault(name, getattr(public, name))
        if name.isidentifier() and find_spec(f"tanlearn.{name}") is not None:
            return import_module(f"tanlearn.{name}")
    raise AttributeError(f"module 'tanlearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # subpackages are not part of the interface

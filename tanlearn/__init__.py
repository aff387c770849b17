"""Bayesian network classifiers trained by likelihood, margin and gradient, in NumPy and Numba.

Importing the package is cheap. Numba, SciPy and scikit-learn are imported when the first public name is used.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tanlearn._version import __version__ as __version__
from tanlearn._warnings import warn

if TYPE_CHECKING:
    from tanlearn._public import *  # noqa: F403
    from tanlearn._public import __all__ as __all__

#: Former public names, which go in version 0.4.
_FORMER = {"CountState": "PairCounts"}


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        warn(f"{name} is called {_FORMER[name]}; the former name goes in version 0.4.", FutureWarning)
        return getattr(import_module("tanlearn._public"), _FORMER[name])
    if not (name.startswith("__") and name != "__all__"):  # Python looks up other dunder names in any module
        public = import_module("tanlearn._public")
        if name in ("__all__", *public.__all__):
            return globals().setdefault(name, getattr(public, name))
        if name.isidentifier() and find_spec(f"tanlearn.{name}") is not None:
            return import_module(f"tanlearn.{name}")
    raise AttributeError(f"module 'tanlearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # subpackages are not part of the interface

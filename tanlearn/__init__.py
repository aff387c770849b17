"""Bayesian network classifiers trained by likelihood, margin and gradient, in NumPy and Numba.

Importing the package is fast. Each public name is imported when it is first used, together with the packages that it
needs, such as Numba, SciPy and scikit-learn.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tanlearn._version import __version__ as __version__
from tanlearn._warnings import warn

if TYPE_CHECKING:
    from tanlearn._public import *  # noqa: F403
    from tanlearn._public import __all__ as __all__

#: Former public names, which will be removed in version 0.4.
_FORMER = {"CountState": "PairCounts"}


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        warn(f"{name} was renamed to {_FORMER[name]}. The former name will be removed in version 0.4.", FutureWarning)
        return getattr(import_module("tanlearn._public"), _FORMER[name])
    if not (name.startswith("__") and name != "__all__"):  # Python looks up other dunder names in any module
        public = import_module("tanlearn._public")
        if name in ("__all__", *public.__all__):
            return globals().setdefault(name, getattr(public, name))
        if name.isidentifier() and find_spec(f"tanlearn.{name}") is not None:
            return import_module(f"tanlearn.{name}")
    raise AttributeError(f"module 'tanlearn' has no attribute {name!r}{_hint(name)}", name=name)


def _hint(name: str) -> str:
    """Return the end of an error message, with the name that the user may have meant."""
    if name.startswith("_"):
        return ""
    if name in import_module("tanlearn.baselines").__all__:
        return f". Import it from tanlearn.baselines: from tanlearn.baselines import {name}"
    from difflib import get_close_matches

    public = import_module("tanlearn._public").__all__
    lower = {known.lower(): known for known in public}
    near = get_close_matches(name.lower(), [*lower, *(known.removesuffix("classifier") for known in lower)], 1)
    found = "" if not near else lower.get(near[0], lower.get(f"{near[0]}classifier", ""))
    return f". Did you mean {found!r}?" if found else ""


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # subpackages are not listed

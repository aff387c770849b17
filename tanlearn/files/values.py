"""Conversion of values to JSON and arrays, and back, without pickle, for :mod:`tanlearn.files.models`.

While a file is read, only constructors of registered classes run. These constructors only store their arguments. All
results are validated.
"""

from __future__ import annotations

import importlib
import inspect
import math
import reprlib
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.files.archive import ExplainedError
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.structures import Structure

__all__ = ["Reader", "Writer", "is_registered", "register", "register_conversion"]

_NUMBERS = (*(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float16", "float32", "float64")
_SCALARS: dict[str, Any] = {
    "bool": np.bool_,
    "str": np.str_,
    "bytes": np.bytes_,
    **{name: np.dtype(name).type for name in _NUMBERS},
}
#: Parameters that depend on the machine, and are therefore not part of a model.
_UNSAVED = {"checkpoint"}
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "U": "str", "S": "bytes"}
#: Registered classes by name. Files can refer only to these classes.
_CLASSES: dict[str, Any] = {}
#: Functions that convert parameters of earlier versions, with their classes as keys.
_CONVERSIONS: dict[type, Callable[[dict[str, Any]], dict[str, Any]]] = {}
#: Module with the public names of the package, and package that registers its classes when it is imported.
_PUBLIC, _REGISTERING = "tanlearn._public", "tanlearn.baselines"


def register(values: Iterable[object]) -> None:
    """Register classes, so that model files can refer to them by name. Values without ``get_params`` are ignored."""
    for value in values:
        if isinstance(value, type) and hasattr(value, "get_params"):
            _CLASSES[value.__name__] = value


def register_conversion(owner: type, convert: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Register a function that converts parameters in files of earlier versions to parameters of this version."""
    _CONVERSIONS[owner] = convert


def is_registered(value: object) -> bool:
    """Return whether the class of an object is registered."""
    return _registered(type(value).__name__) is type(value)


def _registered(name: str) -> Any:
    """Return the class that is registered under a name, or None. Only modules of public names may be imported."""
    if name not in _CLASSES:
        public = importlib.import_module(_PUBLIC)
        if name in public.__all__:
            register([getattr(public, name)])
        else:
            importlib.import_module(_REGISTERING)
    return _CLASSES.get(name)


class Writer:
    """Encoder of values as JSON. Arrays, which JSON cannot contain, are collected in ``arrays``."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}  # C-contiguous, little-endian arrays by entry name

    def encode(
        self, value: Any, owner: str, path: str, remedy: str = "Convert it to one of these, and fit again."
    ) -> Any:
        """Return a value as JSON. Raise ValueError with ``remedy`` if a file cannot store the value.

        In messages, ``owner`` is the name of the containing object, and ``path`` is the name of the value in this
        object, as in ``set_params``.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if kind is float:
            return {"kind": "float", "value": repr(value)}
        if kind is bytes:
            return {"kind": "bytes", "hex": value.hex()}
        if kind is list:
            return [self.encode(item, owner, path, remedy) for item in value]
        if kind is tuple:
            return {"kind": "tuple", "items": self.encode(list(value), owner, path, remedy)}
        if kind is dict:
            return {"kind": "dict", "items": [self.encode([*item], owner, path, remedy) for item in value.items()]}
        if kind is np.ndarray and value.dtype.kind == "O" and value.ndim == 1:
            return {"kind": "objects", "items": self.encode(value.tolist(), owner, path, remedy)}
        if kind is np.ndarray and _name_of(value.dtype) in _SCALARS:
            return {"kind": "array", "member": self._keep(value)}
        if isinstance(value, np.generic) and _name_of(value.dtype) in _SCALARS and kind is value.dtype.type:
            return {"kind": "scalar", "type": _name_of(value.dtype), "value": self.encode(value.item(), owner, path)}
        if kind is Structure:
            return {"kind": "structure", "parents": self._keep(value.parents), "cyclic": not value.is_acyclic}
        if kind is CandidateSets:
            sets = {"parents": self._keep(value.parents), "group": self._keep(value.group)}
            flags = {"arborescence": bool(value.arborescence), "allow_cycles": bool(value.allow_cycles)}
            if value.selectable is not None:
                sets["selectable"] = self._keep(value.selectable)
            return {"kind": "candidates", **sets, **flags}
        if is_registered(value):
            return {
                "kind": "object",
                "class": kind.__name__,
                "parameters": self.parameters(value, owner, f"{path}__"),
            }
        raise ExplainedError(
            f"{owner} cannot be saved with {path}={reprlib.repr(value)}. Files can store numbers, strings, None, "
            f"lists, tuples, dictionaries, arrays, structures, and learners and losses of tanlearn, but not "
            f"{kind.__name__}. {remedy}"
        )

    def parameters(self, estimator: Any, owner: str, prefix: str = "") -> dict[str, Any]:
        """Return the constructor parameters of an estimator, learner or loss as JSON.

        In messages, ``owner`` is the name of the outermost object, and ``prefix`` is prepended to names of parameters.
        """
        defaults, encoded = inspect.signature(type(estimator)).parameters, {}
        for name, value in sorted(estimator.get_params(deep=False).items()):
            if name not in _UNSAVED:
                change = f"set_params({prefix}{name}={defaults[name].default!r})"
                remedy = f"Replace it first, for example with {owner}.{change}, which does not change predictions."
                encoded[name] = self.encode(value, owner, f"{prefix}{name}", remedy)
        return encoded

    def _keep(self, array: AnyArray) -> str:
        """Store an array, and return the name of its archive entry."""
        name = f"{len(self.arrays)}.npy"
        self.arrays[name] = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
        return name


class Reader:
    """Decoder of JSON from a :class:`Writer`. Each value is validated."""

    def __init__(self, arrays: dict[str, AnyArray]) -> None:
        self.arrays = dict(arrays)  # arrays by entry name, each removed when it is used

    def decode(self, value: Any) -> Any:
        """Return the value that :meth:`Writer.encode` has encoded. Invalid JSON raises ValueError."""
        if type(value) is list:
            return [self.decode(item) for item in value]
        if type(value) is not dict:
            return value
        content = dict(value)
        kind = content.pop("kind", None)
        make = self._MAKERS.get(kind) if type(kind) is str else None
        if make is None:
            raise ExplainedError(
                f"it contains a value of kind {kind!r}, which this version does not support. Upgrade tanlearn."
            )
        return make(self, content)

    def restore(self, name: Any, parameters: Any) -> Any:
        """Return an unfitted estimator, learner or loss from its class name and its parameters as JSON.

        Omitted parameters have their default values. Unknown classes or parameters, and values out of range, raise
        ValueError.
        """
        known = _registered(name) if type(name) is str else None
        if known is None:
            raise ExplainedError(
                f"it refers to the class {name!r}, which this version does not have. Upgrade tanlearn."
            )
        if type(parameters) is not dict:
            raise ValueError(f"expected the parameters of {name}, found {reprlib.repr(parameters)}.")
        values = {k: self.decode(v) for k, v in parameters.items()}
        values = _CONVERSIONS.get(known, dict)(values)
        unknown = sorted(set(values) - set(known._get_param_names()))
        if unknown:
            raise ExplainedError(
                f"it sets the parameter {unknown[0]!r} of {name}, which this version does not have. Upgrade tanlearn."
            )
        made = known(**values)
        made._validate_params()
        return made

    def finish(self) -> None:
        """Raise ValueError unless all arrays have been used."""
        if self.arrays:
            raise ValueError(f"all entries must be referenced, but these are not: {', '.join(self.arrays)}.")

    def _take(self, name: Any) -> AnyArray:
        """Remove and return an array. Each array can be used only once."""
        if type(name) is not str or name not in self.arrays:
            raise ValueError(f"the entry {name!r} is absent, or is referenced twice.")
        return self.arrays.pop(name)

    def _indices(self, name: Any, ndim: int) -> IntArray:
        """Return an int64 array of positions of features or CPTs as intp."""
        array = self._take(name)
        if array.dtype != np.int64 or array.ndim != ndim:
            raise ValueError(f"{name} must be int64 with {ndim} dimension(s), got {array.dtype} of {array.shape}.")
        return array.astype(np.intp)

    def _float(self, content: Any) -> float:
        """Return inf, -inf or nan."""
        (text,) = fields(content, "value")
        if text not in ("inf", "-inf", "nan"):
            raise ValueError(f"the value of an object of kind 'float' must be inf, -inf or nan, got {text!r}.")
        return float(text)

    def _bytes(self, content: Any) -> bytes:
        """Return bytes."""
        return bytes.fromhex(*fields(content, "hex"))

    def _items(self, content: Any) -> list[Any]:
        """Return the decoded items of a container."""
        (items,) = fields(content, "items")
        if type(items) is not list:
            raise ValueError(f"expected a list, found {reprlib.repr(items)}.")
        return [self.decode(item) for item in items]

    def _tuple(self, content: Any) -> tuple[Any, ...]:
        """Return a tuple."""
        return tuple(self._items(content))

    def _dict(self, content: Any) -> dict[Any, Any]:
        """Return a dictionary."""
        pairs = self._items(content)
        if any(type(pair) is not list or len(pair) != 2 for pair in pairs) or len(dict(pairs)) < len(pairs):
            raise ValueError("the items of a dictionary must be lists of two values, a distinct key and its value.")
        return dict(pairs)

    def _objects(self, content: Any) -> AnyArray:
        """Return an array of Python objects."""
        items = self._items(content)
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # one by one, because NumPy would interpret tuples as rows
            array[i] = item
        return array

    def _array(self, content: Any) -> AnyArray:
        """Return an array of numbers or strings."""
        return self._take(*fields(content, "member"))

    def _scalar(self, content: Any) -> Any:
        """Return a NumPy scalar."""
        name, value = fields(content, "type", "value")
        value = self.decode(value)
        scalar = _SCALARS[name](value)
        if repr(scalar.item()) != repr(value):  # repr distinguishes 1, 1.0 and True, and nan equals itself
            raise ValueError(f"the value must be of type {name}, got {value!r}.")
        return scalar

    def _structure(self, content: Any) -> Structure:
        """Return a structure."""
        name, cyclic = fields(content, "parents", "cyclic")
        structure = Structure(self._indices(name, 2), allow_cycles=cyclic is True)
        if cyclic is not (not structure.is_acyclic):
            raise ValueError(f"cyclic must be true if the parents form a cycle and false otherwise, got {cyclic!r}.")
        return structure

    def _candidates(self, content: Any) -> CandidateSets:
        """Return candidate sets."""
        mask = self._take(content.pop("selectable")) if "selectable" in content else None
        names = fields(content, "parents", "group", "arborescence", "allow_cycles")
        parents, group, flags = self._indices(names[0], 2), self._indices(names[1], 1), names[2:]
        sets = CandidateSets(parents, group, names[2], names[3], mask)
        proper = len(group) > 1 and group[0] == 0 and (np.diff(group) > 0).all() and group[-1] == len(parents)
        if not proper or parents.shape[1] < 2 or not set(map(type, flags)) <= {bool}:
            raise ValueError("candidate sets must have one or more families per feature, and two flags.")
        if ((parents < -1) | (parents >= sets.n_features) | (parents == sets.child[:, np.newaxis])).any():
            raise ValueError(f"candidate parents must be other features (0..{sets.n_features - 1}), or -1 for none.")
        if mask is not None:
            check_array("selectable", mask, np.bool_, (len(parents),))
            if not np.logical_or.reduceat(mask, group[:-1]).all():
                raise ValueError("each feature must have a candidate set that can be selected.")
        return sets

    def _object(self, content: Any) -> Any:
        """Return an estimator, learner or loss."""
        return self.restore(*fields(content, "class", "parameters"))

    _MAKERS: ClassVar[dict[str, Callable[[Reader, Any], Any]]] = {
        "array": _array,
        "bytes": _bytes,
        "candidates": _candidates,
        "dict": _dict,
        "float": _float,
        "object": _object,
        "objects": _objects,
        "scalar": _scalar,
        "structure": _structure,
        "tuple": _tuple,
    }


def _name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype in files, or a string that is not in ``_SCALARS`` if it is not supported."""
    name = _KINDS.get(dtype.kind, "")
    return f"{name}{8 * dtype.itemsize}" if dtype.kind in "iuf" else name

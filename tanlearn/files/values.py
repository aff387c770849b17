"""Values as JSON and arrays, and back: what :mod:`tanlearn.files.models` writes, without pickle.

Reading runs no code but the constructors of registered classes, which only store, and checks all that it makes.
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
from tanlearn.files.archive import ExplainedError, fields
from tanlearn.network.candidates import CandidateSets
from tanlearn.network.quantization import FixedPoint, IntegerTables
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout, Tables

__all__ = [
    "Reader",
    "Writer",
    "check_array",
    "is_registered",
    "n_table_cells",
    "register",
    "restore_tables",
]

_NUMBERS = (*(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float16", "float32", "float64")
_SCALARS: dict[str, Any] = {
    "bool": np.bool_,
    "str": np.str_,
    "bytes": np.bytes_,
    **{name: np.dtype(name).type for name in _NUMBERS},
}
#: Parameters that are of a machine and no part of a model.
_UNSAVED = {"checkpoint"}
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "U": "str", "S": "bytes"}
#: The classes that a file may name.
_CLASSES: dict[str, Any] = {}
#: Modules that register classes when they are imported. They are imported when a class is not registered yet.
_REGISTERING = ("tanlearn._public", "tanlearn.baselines")


def register(values: Iterable[object]) -> None:
    """Make classes known by their names to files of models."""
    for value in values:
        if isinstance(value, type) and hasattr(value, "get_params"):
            _CLASSES[value.__name__] = value


def is_registered(value: object) -> bool:
    """Return whether a file may name the very class of an object."""
    return _registered(type(value).__name__) is type(value)


def _registered(name: str) -> Any:
    """Return the class of a name that files may contain, or None."""
    if name not in _CLASSES:
        for module in _REGISTERING:
            importlib.import_module(module)
    return _CLASSES.get(name)


def check_array(name: str, array: Any, dtype: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return an array after checking that it is what belongs in its place."""
    found = (array.dtype, array.shape) if isinstance(array, np.ndarray) else type(array).__name__
    if found != (np.dtype(dtype), shape):
        raise ValueError(f"{name} must have type {np.dtype(dtype)} and shape {shape}, got {found}.")
    if array.dtype.kind == "f" and not (array < np.inf).all():
        raise ValueError(f"{name} holds nan or inf, but log-probabilities are numbers or -inf.")
    return array


def n_table_cells(parents: IntArray, n_states: IntArray, n_classes: int) -> int:
    """Return the number of entries of all tables of a structure.

    Shapes: parents: (n_features, n_parents); n_states: (n_features,).
    """
    states = n_states.tolist()
    families = enumerate(parents.tolist())
    sizes = [states[i] * math.prod(states[j] for j in given if j >= 0) for i, given in families]
    return int(n_classes * (1 + sum(sizes)))


def restore_tables(
    structure: Any,
    n_states: IntArray,
    n_classes: int,
    cells: Any,
    fixed_point: FixedPoint | None = None,
    *,
    is_normalized: bool = True,
) -> Tables:
    """Return the tables of a structure, after checking that everything fits together.

    Shapes: n_states: (n_features,).
    """
    if not isinstance(structure, Structure) or structure.n_features != len(n_states):
        raise ValueError(f"the structure must be of {len(n_states)} features, got {structure!r}.")
    n_cells = n_table_cells(structure.parents, n_states, n_classes)
    if fixed_point is not None:
        check_array("cells", cells, np.uint8, (-(-n_cells * fixed_point.n_bits // 8),))
        layout = TableLayout.of_parents(structure.parents, n_states, n_classes)
        return IntegerTables(layout, fixed_point.unpack(cells, n_cells), fixed_point)
    check_array("cells", cells, np.float64, (n_cells,))
    return Tables(TableLayout.of_parents(structure.parents, n_states, n_classes), cells, is_normalized)


class Writer:
    """Turns values into JSON, and keeps the arrays that JSON cannot hold."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}  # C-contiguous and little-endian, by the names of their members

    def encode(
        self, value: Any, owner: str, path: str, remedy: str = "Convert it to one of these, and fit again."
    ) -> Any:
        """Return a value as JSON."""
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
            return {"kind": "candidates", **sets, **flags}
        if is_registered(value):
            return {
                "kind": "object",
                "class": kind.__name__,
                "parameters": self.parameters(value, owner, f"{path}__"),
            }
        raise ExplainedError(
            f"{owner} cannot be saved with {path}={reprlib.repr(value)}: a file holds numbers, strings, None, lists, "
            f"tuples, dictionaries, arrays, structures, and learners and losses of tanlearn, but no {kind.__name__}. "
            f"{remedy}"
        )

    def parameters(self, estimator: Any, owner: str, prefix: str = "") -> dict[str, Any]:
        """Return the constructor's parameters of an estimator, learner or loss as JSON."""
        defaults, encoded = inspect.signature(type(estimator)).parameters, {}
        for name, value in sorted(estimator.get_params(deep=False).items()):
            if name not in _UNSAVED:
                change = f"set_params({prefix}{name}={defaults[name].default!r})"
                remedy = f"Replace it first, as with {owner}.{change}, which leaves predictions as they are."
                encoded[name] = self.encode(value, owner, f"{prefix}{name}", remedy)
        return encoded

    def _keep(self, array: AnyArray) -> str:
        """Keep an array, and return the name of its member."""
        name = f"{len(self.arrays)}.npy"
        self.arrays[name] = np.array(array, dtype=array.dtype.newbyteorder("<"), order="C")
        return name


class Reader:
    """Turns what a :class:`Writer` made back into values, each checked."""

    def __init__(self, arrays: dict[str, AnyArray]) -> None:
        self.arrays = dict(arrays)  # The arrays by the names of their members

    def decode(self, value: Any) -> Any:
        """Return the value that JSON stands for."""
        if type(value) is list:
            return [self.decode(item) for item in value]
        if type(value) is not dict:
            return value
        content = dict(value)
        kind = content.pop("kind", None)
        make = self._MAKERS.get(kind) if type(kind) is str else None
        if make is None:
            raise ExplainedError(
                f"it holds something of the kind {kind!r}, which this version does not know: upgrade tanlearn."
            )
        return make(self, content)

    def restore(self, name: Any, parameters: Any) -> Any:
        """Return an estimator, learner or loss with its parameters, as its constructor leaves it."""
        known = _registered(name) if type(name) is str else None
        if known is None:
            raise ExplainedError(
                f"it names the class {name!r}, which is not known: this version has no such class, upgrade tanlearn."
            )
        if type(parameters) is not dict:
            raise ValueError(f"{reprlib.repr(parameters)} stands where the parameters of {name} belong.")
        unknown = sorted(set(parameters) - set(known._get_param_names()))
        if unknown:
            raise ExplainedError(
                f"it gives {name} a parameter {unknown[0]!r}, which this version does not know: upgrade tanlearn."
            )
        made = known(**{k: self.decode(v) for k, v in parameters.items()})
        made._validate_params()
        return made

    def finish(self) -> None:
        """Check that every array was asked for."""
        if self.arrays:
            raise ValueError(f"nothing refers to the members {', '.join(self.arrays)}.")

    def _take(self, name: Any) -> AnyArray:
        """Return an array, once."""
        if type(name) is not str or name not in self.arrays:
            raise ValueError(f"the member {name!r} is not there, or is referred to twice.")
        return self.arrays.pop(name)

    def _indices(self, name: Any, ndim: int) -> IntArray:
        """Return an array of feature or table numbers."""
        array = self._take(name)
        if array.dtype != np.int64 or array.ndim != ndim:
            raise ValueError(f"{name} must hold int64 in {ndim} dimension(s), got {array.dtype} of {array.shape}.")
        return array.astype(np.intp)

    def _float(self, content: Any) -> float:
        """Return inf, -inf or nan."""
        (text,) = fields(content, "value")
        if text not in ("inf", "-inf", "nan"):
            raise ValueError(f"the value of a float that JSON cannot write must be inf, -inf or nan, got {text!r}.")
        return float(text)

    def _bytes(self, content: Any) -> bytes:
        """Return bytes."""
        return bytes.fromhex(*fields(content, "hex"))

    def _items(self, content: Any) -> list[Any]:
        """Return the items of a container."""
        (items,) = fields(content, "items")
        if type(items) is not list:
            raise ValueError(f"{reprlib.repr(items)} stands where a list belongs.")
        return [self.decode(item) for item in items]

    def _tuple(self, content: Any) -> tuple[Any, ...]:
        """Return a tuple."""
        return tuple(self._items(content))

    def _dict(self, content: Any) -> dict[Any, Any]:
        """Return a dictionary."""
        pairs = self._items(content)
        if any(type(pair) is not list or len(pair) != 2 for pair in pairs) or len(dict(pairs)) < len(pairs):
            raise ValueError("the items of a dictionary must be lists of two, the first of which differ.")
        return dict(pairs)

    def _objects(self, content: Any) -> AnyArray:
        """Return an array of Python objects."""
        items = self._items(content)
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # one by one: NumPy would take tuples for rows
            array[i] = item
        return array

    def _array(self, content: Any) -> AnyArray:
        """Return an array of numbers or strings."""
        return self._take(*fields(content, "member"))

    def _scalar(self, content: Any) -> Any:
        """Return one of NumPy's scalars."""
        name, value = fields(content, "type", "value")
        value = self.decode(value)
        scalar = _SCALARS[name](value)
        if repr(scalar.item()) != repr(value):  # repr tells 1, 1.0 and True apart, and nan equals itself
            raise ValueError(f"{value!r} is no {name}.")
        return scalar

    def _structure(self, content: Any) -> Structure:
        """Return a structure."""
        name, cyclic = fields(content, "parents", "cyclic")
        structure = Structure(self._indices(name, 2), allow_cycles=cyclic is True)
        if cyclic is not (not structure.is_acyclic):
            raise ValueError(f"cyclic must say whether the parents form a cycle, got {cyclic!r}.")
        return structure

    def _candidates(self, content: Any) -> CandidateSets:
        """Return candidate sets."""
        names = fields(content, "parents", "group", "arborescence", "allow_cycles")
        parents, group, flags = self._indices(names[0], 2), self._indices(names[1], 1), names[2:]
        sets = CandidateSets(parents, group, *flags)
        proper = len(group) > 1 and group[0] == 0 and (np.diff(group) > 0).all() and group[-1] == len(parents)
        if not proper or parents.shape[1] < 2 or not set(map(type, flags)) <= {bool}:
            raise ValueError("candidate sets must have one table and more for every feature, and two flags.")
        if ((parents < -1) | (parents >= sets.n_features) | (parents == sets.child[:, np.newaxis])).any():
            raise ValueError(f"candidate parents must be other features (0..{sets.n_features - 1}), or -1 for none.")
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
    """Return what files call the type of an array or scalar, or something that is not in ``_SCALARS``."""
    name = _KINDS.get(dtype.kind, "")
    return f"{name}{8 * dtype.itemsize}" if dtype.kind in "iuf" else name

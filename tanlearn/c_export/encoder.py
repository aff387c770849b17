"""C99 code that encodes raw values with the same comparisons as in Python.

A cut point becomes a constant of the C type of its column. For single precision and integers, this is the largest
number of the type that is not above the cut point. Comparisons therefore have the same results as in Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray
from tanlearn.c_export.text import CText, signed_type
from tanlearn.encoding.discretize import CUT_POINT_DISCRETIZERS
from tanlearn.encoding.table_encoder import TableEncoder

__all__ = ["NUMBER_TYPES", "ColumnKind", "add_encoder", "add_value_encoder", "column_kinds", "is_union", "to_c"]

#: C types. The keys are the allowed values of ``number_type``.
NUMBER_TYPES = {"double": "double", "float": "float", "int32": "int32_t", "int16": "int16_t"}
_INTEGERS = {"int16_t": 16, "int32_t": 32, "int64_t": 64}
_LIMITS = {"double": "DBL_MAX", "float": "FLT_MAX"}


@dataclass(frozen=True, eq=False)
class ColumnKind:
    """Encoding of a column: its C type and its cut points or categories."""

    name: str  # "cuts" (by cut points), "numbers", "integers", "strings" (by categories) or "codes" (not encoded)
    member: str  # name of the member for the value in the union of all C types
    c_type: str  # C type of the raw value, or empty for "codes"
    values: list[Any]  # cut points or categories, as numbers of the C type or as bytes


_CUT_POINT_BLOCKS = {
    False: """
            const @type@ number = @value@;
            const @kept@ *known = &@array@;
            while ((code + 1u < n) && (number > @known@)) {
                ++code;
                ++known;
            }""",
    True: """
            const @type@ number = @value@;
            const @kept@ *known = &@array@;
            if (!((number >= -@limit@) && (number <= @limit@))) {
                code = n; /* NaN or infinite */
            } else {
                while ((code + 1u < n) && (number > @known@)) {
                    ++code;
                    ++known;
                }
            }""",
}
_EQUAL = """
            const @kept@ *known = &@array@;
            while ((code < n) && (@value@ != @known@)) {
                ++code;
                ++known;
            }"""
_BLOCKS = {
    "numbers": _EQUAL,
    "integers": _EQUAL,
    "strings": """
            code = model_find(@value@, &@array@, n);""",
    "codes": """
            code = @value@;""",
}

_FIND = """
/* Return the index of a string among n consecutive strings; n if it is not found, or is null. */
static inline model_code model_find(const char *string, const uint8_t *known, model_code n)
{
    for (model_code code = 0; (string != 0) && (code < n); ++code) {
        const char *rest = string;
        while ((@known@ != 0u) && (@known@ == (uint8_t)*rest)) {
            ++known;
            ++rest;
        }
        if ((@known@ == 0u) && (*rest == '\\0')) {
            return code;
        }
        while (@known@ != 0u) {
            ++known;
        }
        ++known;
    }
    return n;
}"""

_ENCODE = """
/* Write the codes of a row. Return 0; or the column, counted from 1, of a value that is missing or did not occur in
   training. Missing values: @missing@. */
static inline int16_t model_encode(const model_value *row, model_code *codes)
{
    for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
        const model_code n = @n_states@;
        model_code code = 0;@blocks@
        if (code >= n) {
            return (int16_t)((int16_t)i + 1);
        }
        codes[i] = code;
    }
    return 0;
}

/* Return the most probable class of a row; -1 if a value is missing or did not occur in training. */
static inline int16_t model_predict(const model_value *row)
{
    model_code codes[MODEL_N_FEATURES];
    return (model_encode(row, codes) == 0) ? model_predict_codes(codes) : -1;
}"""


_ENCODE_VALUE = """
/* Write the code of a value of feature i. Return 0; or -1, without writing, if the value is missing or did not occur in
   training. Missing values: @missing@. */
static inline int16_t model_encode_value(model_index i, const model_value *value, model_code *result)
{
    const model_code n = @n_states@;
    model_code code = 0;@blocks@
    if (code >= n) {
        return -1;
    }
    *result = code;
    return 0;
}"""


def column_kinds(encoder: TableEncoder, names: list[str], number_type: str) -> list[ColumnKind]:
    """Return the encoding of each column of a fitted encoder.

    ``names`` are the names of the columns in messages, and ``number_type`` is a key of ``NUMBER_TYPES``. Raises
    ValueError if a column had no value in training or has a category for missing values, or if C cannot represent a cut
    point or category.
    """
    if encoder.has_missing_category_.any():
        raise ValueError(
            f"C code cannot represent a category for missing values, but "
            f"{names[int(encoder.has_missing_category_.argmax())]} has one. Fit with "
            f"encoder=TableEncoder(handle_missing='marginalize'), or impute missing values."
        )
    known = type(encoder) is TableEncoder and type(encoder.discretizer_) in (*CUT_POINT_DISCRETIZERS, type(None))
    cuts = iter(encoder.discretizer_.cut_points_ if known and encoder.discretizer_ is not None else [])
    kinds = []
    for categories, name in zip(encoder.categories_, names, strict=True):
        if not known:
            kinds.append(ColumnKind("codes", "code", "", []))
        elif categories is None:
            kinds.append(_cut_point_kind(next(cuts), name, NUMBER_TYPES[number_type]))
        else:
            kinds.append(_of_categories(categories, name, NUMBER_TYPES[number_type]))
    widest = any(kind.c_type == "int64_t" for kind in kinds)
    return [replace(kind, c_type="int64_t") if widest and kind.name == "integers" else kind for kind in kinds]


def _cut_point_kind(cut_points: AnyArray, name: str, c_type: str) -> ColumnKind:
    """Return the encoding of a continuous column."""
    below: Callable[[float], Any]
    if c_type in _INTEGERS:
        below, largest = math.floor, 2.0 ** (_INTEGERS[c_type] - 1)
    else:
        below = _single_below if c_type == "float" else float
        largest = float(np.finfo(np.float32 if c_type == "float" else np.float64).max)
    wrong = cut_points[np.abs(cut_points) > largest]
    if wrong.size:
        raise ValueError(
            f"cut points must be in the range of {c_type}, but {name} has the cut point {wrong[0]}. Pass a wider "
            f"number_type."
        )
    return ColumnKind("cuts", "number", c_type, [below(cut) for cut in cut_points.tolist()])


def _single_below(number: float) -> float:
    """Return the largest float32 that is not above a number."""
    single = np.float32(number)
    return float(single if float(single) <= number else np.nextafter(single, np.float32(-np.inf)))


def _of_categories(categories: AnyArray, name: str, c_type: str) -> ColumnKind:
    """Return the encoding of a categorical column."""
    values = categories.tolist()
    if not values:
        raise ValueError(f"columns must have values in training, but {name} had none. Fit without the column.")
    types = {*map(type, values)}
    kind = ColumnKind("codes", "code", "", [])
    if types <= {str} or types <= {bytes}:
        kind = ColumnKind("strings", "string", "const char *", values)
    elif types <= {bool, int, float}:
        if c_type in _INTEGERS:
            kind = ColumnKind("integers", "number", c_type, values)
        elif float in types:
            kind = ColumnKind("numbers", "number", c_type, values)
        else:
            fits = all(-(2**31) <= value < 2**31 for value in values)
            kind = ColumnKind("integers", "integer", "int32_t" if fits else "int64_t", values)
    known = [to_c(value, kind.c_type, name) for value in kind.values]
    if kind.name == "numbers" and known != kind.values:
        wrong = next(value for value, near in zip(kind.values, known, strict=True) if value != near)
        raise ValueError(f"{c_type} cannot represent the category {wrong} of {name}. Pass another number_type.")
    return replace(kind, values=known)


def to_c(value: Any, c_type: str, position: str) -> Any:
    r"""Convert a value to the nearest value of a C type: an int, a rounded float, or bytes without null characters.

    Raises ValueError if the type cannot represent the value. Messages contain the column in ``position``.
    """
    if isinstance(value, (str, bytes)) and c_type == "const char *":
        encoded = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        if 0 not in encoded and (isinstance(value, bytes) or encoded.decode() == value):
            return encoded
    elif isinstance(value, (bool, int, float)):
        if c_type in _INTEGERS and abs(value) <= 2.0**63 and value == int(value):
            bound = 2 ** (_INTEGERS[c_type] - 1)
            if -bound <= value < bound:
                return int(value)
        elif c_type in _LIMITS:
            with np.errstate(over="ignore"):
                rounded = float(np.float32(value) if c_type == "float" else value)
            if math.isfinite(rounded):
                return rounded
    raise ValueError(
        f"{c_type} cannot represent {value!r} in {position}. Pass another number_type, or change the value."
    )


def is_union(kinds: list[ColumnKind]) -> bool:
    """Return whether the columns have different C types."""
    return len({kind.c_type for kind in kinds}) > 1


def add_encoder(text: CText, kinds: list[ColumnKind], n_states: str) -> None:
    """Append the cut points and categories, and the functions whose arguments are raw rows.

    ``text`` must contain ``model_predict_codes``. ``n_states`` is the C expression for the number of states of feature
    ``i``.
    """
    blocks = _add_blocks(text, kinds, "row[i]")
    text.add(_ENCODE, n_states=n_states, blocks=blocks, missing=_missing(kinds))


def add_value_encoder(text: CText, kinds: list[ColumnKind], n_states: str) -> None:
    """Append cut points, categories, and the function whose argument is a raw value (see :func:`add_encoder`)."""
    blocks = _add_blocks(text, kinds, "(*value)").replace("\n    ", "\n")
    text.add(_ENCODE_VALUE, n_states=n_states, blocks=blocks, missing=_missing(kinds))


def _add_blocks(text: CText, kinds: list[ColumnKind], value: str) -> str:
    """Append the cut points and categories. Return C code that encodes the expression ``value`` for feature i."""
    used = {kind.name: kind for kind in kinds}
    members = {kind.member: text.rename(kind.c_type or "model_code") for kind in kinds}
    if is_union(kinds):
        fields = "".join(f"    {c_type} {member};\n".replace("* ", "*") for member, c_type in members.items())
        text.add(
            "\n/* A value of a row, in the member of its column. */\ntypedef union {\n@fields@} model_value;",
            fields=fields,
        )
    else:
        text.add("\n/* A value of a row. */\ntypedef @type@ model_value;", type=next(iter(members.values())))
    start = [0] * len(kinds)
    for name in [name for name in used if name != "codes"]:
        _add_values(text, name, kinds, start)
    first = text.column("start", start)
    number = text.column("kind", [[*used].index(kind.name) for kind in kinds])
    blocks = ""
    for k, (name, kind) in enumerate(used.items()):
        template = _CUT_POINT_BLOCKS[kind.c_type in _LIMITS] if name == "cuts" else _BLOCKS[name]
        values = {"value": f"{value}.{kind.member}" if is_union(kinds) else value}
        if name != "codes":
            values |= {"array": f"{text.name}_{name}[{first}]", "known": text.read_at(name, "known")}
            values["kept"] = text.types[name]
        body = text.rename(template, type=kind.c_type, limit=_LIMITS.get(kind.c_type), **values)
        condition = f"if ({number} == {k}u) " if k < len(used) - 1 else ""
        blocks += f"{' else ' if k else chr(10) + ' ' * 8}{condition}{{{body}\n        }}"
    if "strings" in used:
        text.add(_FIND, known=text.read_at("strings", "known"))
    return blocks


def _missing(kinds: list[ColumnKind]) -> str:
    """Describe the values that represent missing values in a row, for a comment in C."""
    ways = {
        "cuts": "NaN (compile without -ffast-math)",
        "numbers": "NaN (compile without -ffast-math)",
        "integers": "any integer that is not a category",
        "strings": "null",
        "codes": "any number that is not a code",
    }
    used = {kind.name: kind for kind in kinds}
    chosen = {ways[name] for name, kind in used.items() if name != "cuts" or kind.c_type in _LIMITS}
    return ", ".join(sorted(chosen)) or "impossible in this type"


def _add_values(text: CText, name: str, kinds: list[ColumnKind], start: list[int]) -> None:
    """Append the cut points or categories of all columns of a kind, without duplicates. Set ``start`` in place."""
    begun: dict[tuple[Any, ...], int] = {}
    pool: list[Any] = []
    chosen = [i for i, kind in enumerate(kinds) if kind.name == name]
    for i in chosen:
        values = b"".join(value + b"\0" for value in kinds[i].values) if name == "strings" else kinds[i].values
        if (key := tuple(values)) not in begun:
            begun[key] = len(pool)
            pool += values
        start[i] = begun[key]
    c_type = kinds[chosen[0]].c_type
    smallest = "uint8_t" if name == "strings" else signed_type(pool) if c_type in _INTEGERS else c_type
    text.array(name, smallest, pool)

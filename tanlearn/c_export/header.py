"""Export of integer classifiers as C99 headers for embedded use, without floating point, multiplication or files.

A header contains a complete classifier and needs no library. ``name_predict(row)`` takes raw values,
``name_predict_codes(codes)`` takes codes, and both return the number of a class. They add one magnitude per CPT or
term, as Python does (see :class:`~tanlearn.IntegerTables`). The class with the smallest sum is the most probable one;
ties go to the first class.

Rows must be complete. To marginalize a missing feature, Python computes exponentials: rounded CPTs are not normalized,
so even the CPT of a feature without children does not sum to one. The C functions return -1 for a missing or unseen
value, and the caller decides how to proceed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import codes_dtype
from tanlearn._version import __version__
from tanlearn.c_export.encoder import NUMBER_TYPES, ColumnKind, add_encoder, column_kinds, is_union
from tanlearn.c_export.scores import PREDICT_CODES, Scores
from tanlearn.c_export.self_check import self_test
from tanlearn.c_export.tables import NetworkScores
from tanlearn.c_export.terms import TermScores
from tanlearn.c_export.text import CText, comment, size_of, spell_string, unsigned_type
from tanlearn.files.description import feature_names
from tanlearn.files.regular_files import Kind, write_file
from tanlearn.models.boosted_terms import BoostedTerms

__all__ = ["export_c"]

_FILE = Kind("C source", "Name another file", "Export it again")
#: Largest 16-bit int.
_MOST = 2**15 - 1

_HEAD = """/* @name@: @title@. Written by tanlearn @version@; do not edit.

   int16_t @name@_predict(const @name@_value *row)
       Return the class of a row of @n_features@ raw values, as a number from 0; -1 if a value is missing or did not
       occur in training. The caller decides what to do with such a row.
   int16_t @name@_encode(const @name@_value *row, @name@_code *codes)
       Convert the raw values of a row to codes. Return 0, or the column, counted from 1, without a code.
   int16_t @name@_predict_codes(const @name@_code *codes)
       Return the class of a row of codes; -1 if a code is invalid.
   int16_t @name@_sums(const @name@_code *codes, @name@_sum *sums)
       Write the sum of magnitudes of each class; the smallest sum is that of the most probable class.

   Constants take @constants@ bytes. Arrays of a prediction take @stack@ bytes of the stack.

   Values of a row, in this order:
@columns@
   On AVR, constants are stored in flash memory. For another separate memory, define these macros before you include
   this file: MODEL_ATTRIBUTE, which follows the names of arrays, and the macros that read from a pointer:
   @macros@.
*/
#ifndef MODEL_H
#define MODEL_H

@includes@

#if defined(__AVR__) && !defined(MODEL_ATTRIBUTE)
#include <avr/pgmspace.h>
#define MODEL_ATTRIBUTE PROGMEM
@avr@@split@#endif
#ifndef MODEL_ATTRIBUTE
#define MODEL_ATTRIBUTE
#endif
@readers@
#ifdef __cplusplus
extern "C" {
#endif

#define MODEL_N_FEATURES @n_features@u
#define MODEL_N_CLASSES @n_classes@u
typedef @index@ model_index; /* number of a feature or class */
typedef @code@ model_code;
typedef @sum@ model_sum;
"""

_TAIL = """

#ifdef __cplusplus
}
#endif

#endif
"""

_CLASSES = """
/* Names of the classes, by number. */
static const char *const model_class_names[MODEL_N_CLASSES] = {
@strings@};
enum {
@numbers@};"""

#: Macros of avr-libc that read flash memory on AVR. Types without such a macro are copied by a function.
_AVR = {
    "READ_8": "pgm_read_byte",
    "READ_16": "pgm_read_word",
    "READ_32": "pgm_read_dword",
    "READ_FLOAT": "pgm_read_float",
}
_AVR_COPIED = {"READ_64": "uint64_t", "READ_DOUBLE": "double"}
_COPY = """static inline @type@ model_@function@(const void *pointer)
{
    @type@ value;
    memcpy_P(&value, pointer, sizeof(value));
    return value;
}
"""
_SPLIT = """#define MODEL_SPLIT /* an array has at most 32,767 bytes */
#ifdef __AVR_HAVE_ELPM__
#define MODEL_FAR /* pointers reach only 64 KB */
#endif
"""
_READER = """#ifndef MODEL_@reader@
#define MODEL_@reader@(pointer) (*(pointer))
#endif
"""
_DOUBLE = """
#if DBL_MANT_DIG < 53
#error "double has single precision here: export with number_type='float'"
#endif"""


def export_c(
    model: Any,
    path: str | os.PathLike[str],
    *,
    bits: int = 8,
    name: str | None = None,
    packed: bool = True,
    number_type: str = "double",
    test_rows: Any = None,
) -> None:
    """Write a fitted classifier as one C99 header, and optionally a test program.

    See :meth:`tanlearn.NaiveBayesClassifier.export_c` for the parameters and errors. CPTs must be integers; numbers of
    other models are rounded to ``bits``.
    """
    _check_model(model)
    target = Path(path)
    name = target.stem if name is None else name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", name):
        raise ValueError(
            f"name must be a C identifier: a letter from a to z, then at most 30 letters, digits or _; got {name!r}. "
            f"Pass another."
        )
    if number_type not in NUMBER_TYPES:
        raise ValueError(f"number_type must be one of {', '.join(map(repr, NUMBER_TYPES))}, got {number_type!r}.")
    names = feature_names(model)
    size = max(len(names), len(model.classes_))
    if size > _MOST:
        raise ValueError(
            f"there are {size} features or classes, but a 16-bit int in C is at most {_MOST}. Leave columns out, or "
            f"merge classes."
        )
    kinds = column_kinds(model.encoder_, [f"column {column!r}" for column in names], number_type)
    scores, kinds = _scores(model, kinds, bits)
    header = _header(model, scores, name, kinds, names, packed)
    files = {target: header}
    if test_rows is not None:
        if not re.fullmatch(r"[\w .+-]+", target.name, re.ASCII):
            raise ValueError(
                f"{target.name!r} cannot be included in C: use only letters, digits and _ . + - in the file name."
            )
        files[target.with_name(f"{target.stem}_test.c")] = self_test(model, scores, target.name, name, kinds, test_rows)
    for file, content in files.items():
        write_file(file, content.encode("ascii"), _FILE)


def _check_model(model: Any) -> None:
    """Raise an error if a classifier is not fitted, or cannot be exported."""
    check_is_fitted(model)
    if isinstance(getattr(model, "model_", None), BoostedTerms):
        return
    tables = getattr(model, "tables_", None)
    if tables is None:
        raise TypeError(
            f"only boosted terms and classifiers with a single network can be exported to C, and "
            f"{type(model).__name__} has no single network. Fit a NaiveBayesClassifier, TANClassifier or "
            f"BoostedTermsClassifier. Forests and ensembles can be exported with to_javascript and to_sql."
        )
    if tables.bits is None:
        raise ValueError(
            "the CPTs must be integers to be exported to C: train with bits=..., or export the rounded model from "
            "model.with_bits((integer_bits, fraction_bits))."
        )


def _scores(model: Any, kinds: list[ColumnKind], bits: int) -> tuple[Scores, list[ColumnKind]]:
    """Return the scores of a model as C code, and the encoding of the columns for them."""
    if isinstance(model.model_, BoostedTerms):
        return TermScores.of(model.model_, bits, kinds)
    return NetworkScores(model.tables_, model.structure_), kinds


def _header(model: Any, scores: Scores, name: str, kinds: list[ColumnKind], names: list[str], packed: bool) -> str:
    """Return the text of the header."""
    body = CText(name)
    n_states = body.column("n_states", scores.n_states)
    scores.add(body, n_states, packed=packed)
    body.add(PREDICT_CODES)
    add_encoder(body, kinds, n_states)
    labels = [str(label) for label in model.classes_.tolist()]
    plain = [re.sub(r"[^A-Za-z0-9]+", "_", label) for label in labels]
    if len({*plain}) < len(plain):
        plain = [f"{number}_{label}" for number, label in enumerate(plain)]
    body.add(
        _CLASSES,
        strings="".join(f"    {spell_string(label)},\n" for label in labels),
        numbers="".join(f"    {name.upper()}_CLASS_{label} = {number},\n" for number, label in enumerate(plain)),
    )
    text = str(body)
    floating = [limit for limit in ("DBL_MAX", "FLT_MAX") if limit in text]
    head = CText(name)
    size = max(len(names), scores.n_classes)
    code, total = f"{np.dtype(codes_dtype(max(scores.n_states))).name}_t", unsigned_type(scores.largest_sum)
    head.add(
        _HEAD,
        name=name,
        title=scores.title,
        version=__version__,
        constants=f"{body.n_bytes:,}",
        stack=f"{len(names) * size_of(code) + scores.n_classes * size_of(total):,}",
        n_features=len(names),
        n_classes=scores.n_classes,
        columns="".join(
            f"       [{i}] {_describe(kind, name, is_union(kinds))}: {comment(names[i])}\n"
            for i, kind in enumerate(kinds)
        ),
        macros=", ".join(head.rename(f"MODEL_{reader}") for reader in body.readers),
        avr="".join(_avr_reader(head, reader) for reader in body.readers),
        split=head.rename(_SPLIT) if head.rename("#ifdef MODEL_SPLIT") in text else "",
        includes="#include <stdint.h>" + "\n#include <float.h>" * bool(floating) + _DOUBLE * ("DBL_MAX" in floating),
        readers="".join(head.rename(_READER, reader=reader) for reader in body.readers),
        index="uint_fast8_t" if size < 256 else "uint_fast16_t",
        code=code,
        sum=total,
    )
    return f"{head}{text}{_TAIL}"


def _avr_reader(head: CText, reader: str) -> str:
    """Return the definition of a reader macro on AVR, whose constants are in flash memory."""
    copy, function = "", _AVR.get(reader)
    if function is None:
        copy = head.rename(_COPY, type=_AVR_COPIED[reader], function=reader.lower())
        function = f"{head.name}_{reader.lower()}"
    return copy + head.rename(f"#define MODEL_{reader}(pointer) {function}(pointer)\n")


def _describe(kind: ColumnKind, name: str, named: bool) -> str:
    """Return a description of the values of a column, for a comment in C."""
    what = {"cuts": "", "codes": ", the code that encoder_.transform returns"}
    member, c_type = f".{kind.member} " * named, kind.c_type or f"{name}_code"
    return f"{member}{c_type}{what.get(kind.name, ', one of the categories')}"

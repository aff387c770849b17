"""Export of integer classifiers as C99 headers for embedded use, without floating point, multiplications or files.

A header contains a complete classifier and needs no library. ``name_predict(row)`` predicts from raw values, and
``name_predict_codes(codes)`` from codes. Both return the number of a class. They add one magnitude per CPT or term, as
Python does (see :class:`~tanlearn.IntegerTables`). The class with the smallest sum is the most probable class. In a
tie, it is the first of these classes.

Rows must be complete. Rounded CPTs are not normalized, so even the CPT of a feature without children does not sum to
one. To marginalize a missing feature, Python therefore computes exponentials. The C functions return -1 if a value is
missing or unseen, and the caller decides how to proceed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import codes_dtype
from tanlearn.c_export.encoder import NUMBER_TYPES, ColumnKind, add_encoder, column_kinds
from tanlearn.c_export.forest import ForestSums
from tanlearn.c_export.frame import add_class_names, check_identifier, framed
from tanlearn.c_export.scores import PREDICT_CODES, Scores
from tanlearn.c_export.self_check import self_test
from tanlearn.c_export.tables import NetworkSums
from tanlearn.c_export.terms import TermSums
from tanlearn.c_export.text import CText, size_of, unsigned_type
from tanlearn.files.description import feature_names
from tanlearn.files.regular_files import Kind, write_file
from tanlearn.forest.forest import Forest
from tanlearn.models.boosted_terms import BoostedTerms

__all__ = ["export_c"]

_FILE = Kind("C source", "Name another file", "Export it again")
#: Largest 16-bit integer.
_MOST = 2**15 - 1

_FUNCTIONS = """   int16_t @name@_predict(const @name@_value *row)
       Return the class of a row of @n_features@ raw values, as a number from 0; -1 if a value is missing or did not
       occur in training. The caller decides what to do with such a row.
   int16_t @name@_encode(const @name@_value *row, @name@_code *codes)
       Convert the raw values of a row to codes. Return 0; or the first column without a code, counted from 1.
   int16_t @name@_predict_codes(const @name@_code *codes)
       Return the class of a row of codes; -1 if a code is invalid.
   int16_t @name@_sums(const @name@_code *codes, @name@_sum *sums)
       Write the sum of magnitudes of each class. The most probable class has the smallest sum."""

_DEFINITIONS = """#define MODEL_N_FEATURES @n_features@u
#define MODEL_N_CLASSES @n_classes@u
typedef @index@ model_index; /* number of a feature or class */
typedef @code@ model_code;
typedef @sum@ model_sum;
"""


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

    See :meth:`tanlearn.NaiveBayesClassifier.export_c` for the parameters and errors. CPTs must contain integers. The
    numbers of forests and boosted terms are rounded to ``bits`` bits.
    """
    _check_model(model)
    target = Path(path)
    name = target.stem if name is None else name
    check_identifier(name)
    if number_type not in NUMBER_TYPES:
        raise ValueError(f"number_type must be one of {', '.join(map(repr, NUMBER_TYPES))}, got {number_type!r}.")
    names = feature_names(model)
    size = max(len(names), len(model.classes_))
    if size > _MOST:
        raise ValueError(
            f"there must be at most {_MOST} features and classes, because a C int may have 16 bits, got {size}. "
            f"Leave columns out, or merge classes."
        )
    kinds = column_kinds(model.encoder_, [f"column {column!r}" for column in names], number_type)
    scores, kinds = _scores(model, kinds, bits)
    header = _header(model, scores, name, kinds, names, packed)
    files = {target: header}
    if test_rows is not None:
        if not re.fullmatch(r"[\w .+-]+", target.name, re.ASCII):
            raise ValueError(
                f"the file name must contain only letters, digits and _ . + - to be included in C, got "
                f"{target.name!r}. Rename it."
            )
        files[target.with_name(f"{target.stem}_test.c")] = self_test(model, scores, target.name, name, kinds, test_rows)
    for file, content in files.items():
        write_file(file, content.encode("ascii"), _FILE)


def _check_model(model: Any) -> None:
    """Raise an error if a classifier is not fitted, or cannot be exported."""
    check_is_fitted(model)
    if isinstance(getattr(model, "model_", None), (BoostedTerms, Forest)):
        return
    tables = getattr(model, "tables_", None)
    if tables is None:
        raise TypeError(
            f"only boosted terms, forests and classifiers with a single network can be exported to C, got "
            f"{type(model).__name__}. Fit a NaiveBayesClassifier, TANClassifier or "
            f"BoostedTermsClassifier. Ensembles can be exported with to_javascript and to_sql."
        )
    if tables.bits is None:
        raise ValueError(
            "C code needs integer CPTs, but the CPTs of the model are not rounded. Train with bits=..., or export "
            "model.with_bits((integer_bits, fraction_bits))."
        )


def _scores(model: Any, kinds: list[ColumnKind], bits: int) -> tuple[Scores, list[ColumnKind]]:
    """Return the scores of a model for export to C, and the encoding of its columns."""
    if isinstance(model.model_, BoostedTerms):
        return TermSums.of(model.model_, bits, kinds)
    if isinstance(model.model_, Forest):
        return ForestSums(model.model_, bits), kinds
    return NetworkSums(model.tables_, model.structure_), kinds


def _header(model: Any, scores: Scores, name: str, kinds: list[ColumnKind], names: list[str], packed: bool) -> str:
    """Return the text of the header."""
    body = CText(name)
    n_states = body.column("n_states", scores.n_states)
    scores.add(body, n_states, packed=packed)
    body.add(PREDICT_CODES)
    add_encoder(body, kinds, n_states)
    add_class_names(body, model.classes_.tolist())
    size = max(len(names), scores.n_classes)
    code, total = f"{np.dtype(codes_dtype(max(scores.n_states))).name}_t", unsigned_type(scores.largest_sum)
    rename, number = body.rename, {"n_features": len(names), "n_classes": scores.n_classes}
    return framed(
        body,
        kinds,
        names,
        title=scores.title,
        functions=rename(_FUNCTIONS, name=name, n_features=len(names)),
        values="Values of a row",
        definitions=rename(
            _DEFINITIONS, index="uint_fast8_t" if size < 256 else "uint_fast16_t", code=code, sum=total, **number
        ),
        stack=len(names) * size_of(code) * scores.n_code_arrays + scores.n_classes * size_of(total),
    )

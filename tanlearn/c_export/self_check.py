"""C99 program that compares an exported classifier with Python, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tanlearn._typing import Codes, missing_code
from tanlearn.c_export.encoder import ColumnKind, is_union, to_c
from tanlearn.c_export.text import CText, spell, spell_lines, spell_string
from tanlearn.data.columns import read_columns
from tanlearn.data.table import Column, Table
from tanlearn.network.inference import log_joint
from tanlearn.network.quantization import IntegerTables

__all__ = ["self_test"]

_HEAD = """/* Made by tanlearn: returns 0 if @name@ predicts as it does in Python. */
#include "@header@"

#include <math.h>
#include <stdio.h>
"""

_ROWS = """static const model_@type@ model_test_@name@[][@length@] = {
@body@};"""

_PROGRAM = """
static int model_test_differs(const char *what, int row, int found, int wanted)
{
    printf("row %d: %s gives %d instead of %d\\n", row, what, found, wanted);
    return 1;
}

int main(void)
{
    model_code codes[MODEL_N_FEATURES];
    model_sum sums[MODEL_N_CLASSES];
    for (int row = 0; row < @n_rows@; ++row) {
        const int wanted = model_test_class[row];
        int found = model_predict(model_test_row[row]);
        if (found != wanted) {
            return model_test_differs("model_predict", row, found, wanted);
        }
        found = model_predict_codes(model_test_codes[row]);
        if (found != wanted) {
            return model_test_differs("model_predict_codes", row, found, wanted);
        }
        found = model_encode(model_test_row[row], codes) != 0;
        if (found != (wanted < 0)) {
            return model_test_differs("model_encode", row, found, wanted < 0);
        }
        if (wanted < 0) {
            continue;
        }
        for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
            if (codes[i] != model_test_codes[row][i]) {
                return model_test_differs("model_encode", row, (int)codes[i], (int)model_test_codes[row][i]);
            }
        }
        if (model_sums(codes, sums) != 0) {
            return model_test_differs("model_sums", row, -1, 0);
        }
        for (model_index c = 0; c < MODEL_N_CLASSES; ++c) {
            if (sums[c] != model_test_sums[row][c]) {
                return model_test_differs("model_sums", row, (int)sums[c], (int)model_test_sums[row][c]);
            }
        }
    }
    puts("@n_rows@ rows of @name@ agree");
    return 0;
}
"""


def self_test(model: Any, header: str, name: str, kinds: list[ColumnKind], X: Any) -> str:
    """Return a program that compares codes, sums and classes of raw rows X with those of Python.

    Floating-point values are rounded to their C type, in Python too. ``header`` is the name of the file to include, and
    ``name`` the prefix of its names. Raises ValueError if X has other columns than in ``fit``, or a value that its C
    type cannot represent.

    Shapes: X: (n_samples, n_features).
    """
    columns = read_columns(X)
    validate_data(model, X, reset=False, skip_check_array=True)
    held = [_held(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    rounded = [_rounded(*found) for found in zip(columns, kinds, held, strict=True)]
    codes: Codes = model.encoder_.encode_columns(Table(rounded), handle_unknown="missing")
    missing = (codes == missing_code(codes.dtype)).any(axis=0)
    tables: IntegerTables = model.tables_
    scores = np.zeros((codes.shape[1], tables.layout.n_classes))
    scores[~missing] = log_joint(tables, model.structure_, np.ascontiguousarray(codes[:, ~missing]))
    sums = np.rint(-scores / tables.fixed_point.step).astype(np.int64)
    classes = np.where(missing, -1, scores.argmax(axis=1))

    text = CText(name)
    text.add(_HEAD, name=name, header=header)
    named = is_union(kinds)
    spelt = [_spell(*found, named) for found in zip(kinds, held, codes.tolist(), strict=True)]
    _add_rows(text, "value", "row", zip(*spelt, strict=True))
    _add_rows(text, "code", "codes", codes.T.tolist())
    _add_rows(text, "sum", "sums", sums.tolist())
    text.add(f"static const int model_test_class[] = {{\n{spell_lines(map(str, classes))}}};")
    text.add(_PROGRAM, n_rows=len(classes), name=name)
    return str(text)


def _held(column: Column, kind: ColumnKind) -> list[Any]:
    """Return the values of a column as represented in C; None for missing values."""
    values = column.values if column.categories is None else column.categories.take(column.values, mode="clip")
    missing = np.zeros(len(values), np.bool_) if column.missing is None else column.missing
    if missing.any() and kind.c_type.startswith("int"):
        raise ValueError(
            f"{column.label} has a missing value in row {missing.argmax()}, which integers in C cannot represent. "
            f"Leave the row out of test_rows."
        )
    pairs = enumerate(zip(values.tolist(), missing.tolist(), strict=True))
    if not kind.c_type:
        return [None] * len(values)
    return [None if lacks else to_c(v, kind.c_type, f"{column.label}, row {row},") for row, (v, lacks) in pairs]


def _rounded(column: Column, kind: ColumnKind, held: list[Any]) -> Column:
    """Return a column with floating-point values rounded as in C."""
    if kind.member != "number" or kind.c_type.startswith("int"):
        return column
    return Column(np.array(held, dtype=np.float64), column.missing, None, column.label)


def _spell(kind: ColumnKind, held: list[Any], codes: list[int], named: bool) -> list[str]:
    """Return the C initializers of a column."""
    if not kind.c_type:
        spelt = list(map(str, codes))
    elif kind.c_type == "const char *":
        spelt = ["0" if value is None else spell_string(value) for value in held]
    else:
        spelt = ["NAN" if value is None else spell(value, kind.c_type) for value in held]
    return [f"{{.{kind.member} = {value}}}" for value in spelt] if named else spelt


def _add_rows(text: CText, c_type: str, name: str, rows: Iterable[Sequence[Any]]) -> None:
    """Append an array of rows."""
    length = text.rename("MODEL_N_CLASSES" if name == "sums" else "MODEL_N_FEATURES")
    body = "".join(f"    {{{', '.join(map(str, row))}}},\n" for row in rows)
    text.add(_ROWS, type=c_type, name=name, length=length, body=body)

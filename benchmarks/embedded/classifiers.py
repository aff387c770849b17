"""Classifiers of codes in C, each with the classes and scores that it must find, bit for bit.

Sources are inserted between `programs.PRELUDE` and the calling code. The networks add floats in the order of the
features, as NumPy does here in single precision. Integer sums are exact in any order."""

import re
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from tanlearn.c_export.split_array import add_split_array, is_long
from tanlearn.c_export.text import CText, spell
from tanlearn.models.log_joint import log_joint


@dataclass(frozen=True)
class Classifier:
    """A classifier in C: its name, source, and what it finds for the rows, whose values are of a type of NumPy."""

    name: str
    source: str
    labels: np.ndarray
    scores: np.ndarray
    rows: np.ndarray


def first_rows(classifier, n):
    """Return a classifier with its first rows only."""
    found = {name: getattr(classifier, name)[:n] for name in ("labels", "scores", "rows")}
    return replace(classifier, **found)


_TYPES = {
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "float32": "float",
}
_HEAD = """typedef {value} value;
typedef {score} score;
enum {{ LENGTH = {length}, N_SCORES = {n_scores} }};
"""
_BEST = """static int16_t predict(const value *row)
{{
    score scores[N_SCORES];
    int16_t best = 0;
    get_scores(row, scores);
    for (int16_t c = 1; c < N_SCORES; ++c) if (scores[c] > scores[best]) best = c;
    return best;
}}
"""
_INTEGERS = """#include "{name}.h"
static int16_t predict(const value *row) {{ return {name}_predict_codes(row); }}
static void get_scores(const value *row, score *scores) {{ {name}_sums(row, scores); }}
"""
_MEMORY = """#define TAN_ATTRIBUTE FLASH
#define TAN_READ_8(pointer) READ_8(pointer)
#define TAN_READ_16(pointer) READ_16(pointer)
#define TAN_READ_32(pointer) READ_32(pointer)
#define TAN_READ_FLOAT(pointer) READ_FLOAT(pointer)
#ifdef __AVR__
#define TAN_SPLIT
#ifdef __AVR_HAVE_ELPM__
#define TAN_FAR
#endif
#endif
typedef uint32_t tan_position;
"""
_FLOATS = """static void get_scores(const value *row, score *scores)
{{
    for (uint8_t c = 0; c < N_SCORES; ++c) scores[c] = 0;
    for (uint8_t k = 0; k <= LENGTH; ++k) {{
        tan_position at = 0;
        if (k > 0) {{
            const uint8_t i = k - 1, parent = {parent};
            at = row[i];
            if (parent < LENGTH) at = at * {n_states} + row[parent];
            at = {offset} + at * N_SCORES;
        }}
        {start}
        for (uint8_t c = 0; c < N_SCORES; ++c) scores[c] += {read};
    }}
}}
"""
_LINEAR = """static const {weight} weights[] FLASH = {{{weights}}};
static const uint16_t offset[] FLASH = {{{offset}}};
static void get_scores(const value *row, score *scores)
{{
    for (uint8_t c = 0; c < N_SCORES; ++c) scores[c] = ({weight}){read}(&weights[c]);
    for (uint8_t i = 0; i < LENGTH; ++i) {{
        const {weight} *added = &weights[READ_16(&offset[i]) + N_SCORES * row[i]];
        for (uint8_t c = 0; c < N_SCORES; ++c) scores[c] += ({weight}){read}(&added[c]);
    }}
}}
"""
_NET = """enum {{ N_HIDDEN = {n_hidden}, SHIFT = {shift} }};
static const int8_t inner[] FLASH = {{{inner}}};
static const int16_t inner_bias[] FLASH = {{{inner_bias}}};
static const int8_t outer[] FLASH = {{{outer}}};
static const int32_t outer_bias[] FLASH = {{{outer_bias}}};
static const uint16_t offset[] FLASH = {{{offset}}};
static void get_scores(const value *row, score *scores)
{{
    int16_t hidden[N_HIDDEN];
    for (uint8_t h = 0; h < N_HIDDEN; ++h) hidden[h] = (int16_t)READ_16(&inner_bias[h]);
    for (uint8_t i = 0; i < LENGTH; ++i) {{
        const int8_t *added = &inner[READ_16(&offset[i]) + N_HIDDEN * row[i]];
        for (uint8_t h = 0; h < N_HIDDEN; ++h) hidden[h] += (int8_t)READ_8(&added[h]);
    }}
    for (uint8_t h = 0; h < N_HIDDEN; ++h) {{
        const int16_t positive = hidden[h] < 0 ? 0 : hidden[h] >> SHIFT;
        hidden[h] = positive > 255 ? 255 : positive;
    }}
    const int8_t *weight = outer;
    for (uint8_t c = 0; c < N_SCORES; ++c) {{
        int32_t sum = (int32_t)READ_32(&outer_bias[c]);
        for (uint8_t h = 0; h < N_HIDDEN; ++h) sum += (int16_t)((int8_t)READ_8(weight++) * hidden[h]);
        scores[c] = sum;
    }}
}}
"""
_TREES = """#include "{path}"
static int16_t predict(const value *row) {{ return (int16_t){name}_predict(row, LENGTH); }}
static void get_scores(const value *row, score *scores) {{ scores[0] = (score){name}_predict(row, LENGTH); }}
"""


def listed(values):
    """Return numbers as an initializer."""
    return ", ".join(map(str, np.asarray(values).ravel().tolist()))


def first_ones(n_states, width):
    """Return where the weights of every feature's first value begin, in rows of a width."""
    return width * np.cumsum([0, *n_states[:-1]])


def _name(title):
    """Return a name in C for a title."""
    return f"m_{re.sub('[^a-z0-9]+', '_', title.lower())}"[:31]


def _head(rows, scores):
    """Return the types and sizes of rows and scores."""
    value, score = _TYPES[rows.dtype.name], _TYPES[scores.dtype.name]
    return _HEAD.format(value=value, score=score, length=rows.shape[1], n_scores=scores.shape[1])


def integers(title, model, codes, folder, *, packed=True):
    """Return an exported classifier of integers; its header goes into a folder."""
    name = _name(title)
    model.export_c(folder / f"{name}.h", packed=packed, number_type="float")  # AVR has no double
    tables = model.tables_
    sums = np.rint(-log_joint(tables, model.structure_, np.ascontiguousarray(codes.T)) / tables.fixed_point.step)
    header = (folder / f"{name}.h").read_text()
    scores = sums.astype(header.split(f" {name}_sum;")[0].rsplit(None, 1)[1].removesuffix("_t"))
    return Classifier(title, _head(codes, scores) + _INTEGERS.format(name=name), scores.argmin(axis=1), scores, codes)


def floats(title, model, codes):
    """Return the tables as they are, in single precision, of networks of one parent at most."""
    layout, text = model.tables_.layout, CText("tan")
    parents = layout.parents[:, 0] if layout.parents.shape[1] else np.full(layout.n_tables, -1)
    cells = np.maximum(model.tables_.cells, -1e30).astype(np.float32)
    n_classes, n_tables = layout.n_classes, layout.n_tables
    parent_states = np.where(parents >= 0, layout.n_states[parents], 0)
    if is_long("float", len(cells), n_classes):
        add_split_array(text, "cells", "float", cells.tolist(), n_classes)
        start, read = "const tan_address from = tan_address_of(at);", "TAN_READ_ADDRESS(from, c)"
    else:
        text.array("cells", "float", cells.tolist())
        start, read = "", text.read("cells", "at + c")
    columns = {"parent": np.where(parents >= 0, parents, n_tables), "n_states": parent_states}
    columns["offset"] = layout.offset[:-1]
    spelt = {name: text.column(name, values.tolist()) for name, values in columns.items()}
    scores = np.repeat(cells[np.newaxis, :n_classes], len(codes), axis=0)
    for i in range(n_tables):
        at = codes[:, i].astype(np.int64)
        if parents[i] >= 0:
            at = at * parent_states[i] + codes[:, parents[i]]
        scores += cells[layout.offset[i] + at[:, np.newaxis] * n_classes + np.arange(n_classes)]
    source = _MEMORY + _head(codes, scores) + f"{text}\n" + _FLOATS.format(start=start, read=read, **spelt)
    return Classifier(title, source + _BEST.format(), scores.argmax(axis=1), scores, codes)


def linear(title, weights, codes, n_states):
    """Return a linear classifier of ones and zeros: a row of biases, then one for every value, float32 or int8."""
    n_classes = weights.shape[1]
    places = first_ones(n_states, n_classes) + n_classes
    is_float = weights.dtype == np.float32
    spelt = ", ".join(spell(value, "float") for value in weights.ravel().tolist()) if is_float else listed(weights)
    scores = np.repeat(weights[:1], len(codes), axis=0).astype(np.float32 if is_float else np.int16)
    for i, place in enumerate(places // n_classes):
        scores += weights[place + codes[:, i]]
    names = {"weight": "float", "read": "READ_FLOAT"} if is_float else {"weight": "int8_t", "read": "READ_8"}
    source = _head(codes, scores) + _LINEAR.format(weights=spelt, offset=listed(places), **names)
    return Classifier(title, source + _BEST.format(), scores.argmax(axis=1), scores, codes)


def int8_weights(weights):
    """Return weights rounded to 8 bits, all on one scale, and that scale."""
    scale = 127 / np.abs(weights).max()
    return np.rint(weights * scale).astype(np.int8), scale


def net(title, layers, codes, n_states, codes_train):
    """Return a net of ones and zeros with one hidden layer of rectifiers, rounded to 8 bits.

    ``layers`` are the weights and biases of both layers, as floats: ``[(inner, bias), (outer, bias)]``. Activations
    are 8 bits, shifted so that a thousandth of those of the training rows is clipped.
    """
    (inner, bias), (outer, outer_bias) = layers
    rounded, scale = int8_weights(inner)
    places = first_ones(n_states, 1)
    biases = np.rint(bias * scale).astype(np.int16)

    def hidden(rows):
        return biases + sum(rounded[place + rows[:, i]].astype(np.int16) for i, place in enumerate(places))

    largest = np.quantile(np.maximum(hidden(codes_train), 0), 0.999)
    shift = max(0, int(np.ceil(np.log2((largest + 1) / 256))))
    weights, outer_scale = int8_weights(outer)
    final = np.rint(outer_bias * outer_scale * scale / 2**shift).astype(np.int32)
    active = np.minimum(np.maximum(hidden(codes), 0) >> shift, 255).astype(np.int32)
    scores = (active @ weights.astype(np.int32) + final).astype(np.int32)
    arrays = {"inner": rounded, "inner_bias": biases, "outer": weights.T, "outer_bias": final}
    spelt = {name: listed(array) for name, array in arrays.items()}
    offset = listed(first_ones(n_states, inner.shape[1]))
    source = _head(codes, scores) + _NET.format(n_hidden=len(bias), shift=shift, offset=offset, **spelt)
    return Classifier(title, source + _BEST.format(), scores.argmax(axis=1), scores, codes)


def trees(title, model, codes, folder):
    """Return a tree or forest by emlearn, as code: the majority class of the trees, the first in case of a tie.

    emlearn tests whether an integer is below a rounded threshold, scikit-learn whether it is at most a threshold. So
    thresholds are replaced by equivalent integers.
    """
    import emlearn

    name, rows, twin = _name(title), codes.astype(np.int16), deepcopy(model)
    members, twins = ([found] if not hasattr(found, "estimators_") else found.estimators_ for found in (model, twin))
    for member in twins:
        member.tree_.threshold[:] = np.floor(member.tree_.threshold) + 1
    emlearn.convert(twin, method="inline", dtype="int16_t").save(file=str(folder / f"{name}.h"), name=name)
    named = np.stack([member.predict(rows).astype(int) for member in members])
    votes = np.stack([(named == c).sum(axis=0) for c in range(len(model.classes_))], axis=1)
    labels = votes.argmax(axis=1)
    scores = labels[:, np.newaxis].astype(np.int16)
    path = (folder / f"{name}.h").as_posix()
    return Classifier(title, _head(rows, scores) + _TREES.format(path=path, name=name), labels, scores, rows)

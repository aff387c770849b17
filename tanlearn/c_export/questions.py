"""C99 code for a tree of questions, which returns the next feature to measure given the answers, and then the class.

Nodes are numbered. The questions come first, followed by an unsure and a sure end for each class. The children of a
question are consecutive, with one child per code of its feature. Equal subtrees are stored only once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tanlearn._typing import codes_dtype
from tanlearn.c_export.encoder import NUMBER_TYPES, add_value_encoder, column_kinds
from tanlearn.c_export.frame import add_class_names, check_identifier, framed
from tanlearn.c_export.text import CText, unsigned_type
from tanlearn.files.description import feature_names
from tanlearn.files.regular_files import Kind, write_file

__all__ = ["Leaf", "Question", "export_questions"]

_FILE = Kind("C source", "Name another file", "Export it again")

_FUNCTIONS = """   Start with the node @macro@_FIRST, and repeat until @name@_feature(node) is -1:
   int16_t @name@_feature(@name@_node node)
       Return the number of the feature to measure, from 0; -1 at the end.
   int16_t @name@_answer(@name@_node *node, const @name@_value *value)
       Go on to the next node, for the measured value. Return 0; or -1, at the same node, if the value is missing or did
       not occur in training. The caller decides what to do then; @name@_class(node) is the class so far.
   int16_t @name@_answer_code(@name@_node *node, @name@_code code)
       The same for a code. The node must be a question.
   int16_t @name@_class(@name@_node node)
       Return the most probable class given the answers so far, as a number from 0.
   int16_t @name@_is_sure(@name@_node node)
       Return 1 if the questions ended because the class is probable enough, otherwise 0."""

_DEFINITIONS = """#define MODEL_N_FEATURES @n_features@u
#define MODEL_N_CLASSES @n_classes@u
#define MODEL_N_QUESTIONS @n_questions@u
#define MODEL_FIRST @first@u
typedef @index@ model_index; /* number of a feature or class */
typedef @code@ model_code;
typedef @node@ model_node;
"""

_QUESTIONS = """
/* Return the number of the feature to measure; -1 at the end. */
static inline int16_t model_feature(model_node node)
{
    if (node >= MODEL_N_QUESTIONS) {
        return -1;
    }
    return (int16_t)@feature@;
}

/* Return the most probable class given the answers so far. */
static inline int16_t model_class(model_node node)
{
    if (node >= MODEL_N_QUESTIONS) {
        return (int16_t)((model_node)(node - MODEL_N_QUESTIONS) >> 1u);
    }
    return (int16_t)@class@;
}

/* Return 1 if the questions ended because the class is probable enough, otherwise 0. */
static inline int16_t model_is_sure(model_node node)
{
    return (int16_t)((node >= MODEL_N_QUESTIONS) && ((((model_node)(node - MODEL_N_QUESTIONS)) & 1u) != 0u));
}

/* Go on to the next node, for a code. Return 0; or -1, at the same node, if the code is invalid. */
static inline int16_t model_answer_code(model_node *node, model_code code)
{
    const model_index i = @feature_of@;
    (void)i; /* all features may have the same number of codes */
    if (code >= @n_states@) {
        return -1;
    }
    const @start_type@ start = @start@;
    *node = @child@;
    return 0;
}"""

_ANSWER = """
/* Go on to the next node, for a measured value. Return 0; or -1, at the same node, if the value is missing or did not
   occur in training. */
static inline int16_t model_answer(model_node *node, const model_value *value)
{
    model_code code;
    if ((*node >= MODEL_N_QUESTIONS) || (model_encode_value((model_index)model_feature(*node), value, &code) != 0)) {
        return -1;
    }
    return model_answer_code(node, code);
}"""


class Leaf(NamedTuple):
    """Node at the end of the questions."""

    best: int  # number of the most probable class
    is_sure: bool


class Question(NamedTuple):
    """Node with the feature to observe next. ``children`` contains the next node for each code of the feature."""

    feature: int
    best: int
    children: tuple[int, ...]


def export_questions(
    model: Any,
    nodes: Sequence[Leaf | Question],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    number_type: str = "double",
) -> None:
    """Write a tree of questions as one C99 header. The first node is the root."""
    target = Path(path)
    name = target.stem if name is None else name
    check_identifier(name)
    if number_type not in NUMBER_TYPES:
        raise ValueError(f"number_type must be one of {', '.join(map(repr, NUMBER_TYPES))}, got {number_type!r}.")
    names = feature_names(model)
    kinds = column_kinds(model.encoder_, [f"column {column!r}" for column in names], number_type)
    questions = [node for node in nodes if isinstance(node, Question)]
    if not questions:
        raise ValueError(
            "a tree needs at least one question, but a class is probable enough without any value. Increase confidence."
        )
    asked = {question.feature for question in questions}
    kinds = [kind if i in asked or kind.name != "cuts" else replace(kind, values=[]) for i, kind in enumerate(kinds)]
    n_states = model.encoder_.n_states_
    numbers = _numbers(nodes)
    body = CText(name)
    states = body.column("n_states", n_states.tolist())
    _add_questions(body, questions, numbers, states)
    add_value_encoder(body, kinds, states)
    body.add(_ANSWER)
    add_class_names(body, model.classes_.tolist())
    n_classes = len(model.classes_)
    size = max(len(names), n_classes)
    definitions = body.rename(
        _DEFINITIONS,
        n_features=len(names),
        n_classes=n_classes,
        n_questions=len(questions),
        first=numbers[0],
        index="uint_fast8_t" if size < 256 else "uint_fast16_t",
        code=f"{np.dtype(codes_dtype(int(n_states.max()))).name}_t",
        node=unsigned_type(len(questions) + 2 * n_classes),
    )
    content = framed(
        body,
        kinds,
        names,
        title=f"tree of {len(questions)} questions",
        functions=body.rename(_FUNCTIONS, name=name, macro=name.upper()),
        values="Features",
        definitions=definitions,
        stack=0,
    )
    write_file(target, content.encode("ascii"), _FILE)


def _numbers(nodes: Sequence[Leaf | Question]) -> list[int]:
    """Return the number of each node in C."""
    n_questions = sum(isinstance(node, Question) for node in nodes)
    numbers, found = [], 0
    for node in nodes:
        if isinstance(node, Question):
            numbers.append(found)
            found += 1
        else:
            numbers.append(n_questions + 2 * node.best + node.is_sure)
    return numbers


def _add_questions(text: CText, questions: list[Question], numbers: list[int], n_states: str) -> None:
    """Append the arrays of the questions, and the functions that read nodes."""
    starts: dict[tuple[int, ...], int] = {}
    children: list[int] = []
    start = []
    for question in questions:
        own = tuple(numbers[child] for child in question.children)
        if own not in starts:
            starts[own] = len(children)
            children += own
        start.append(starts[own])
    text.add("\n/* Feature and most probable class of each question, and its children, one per code. */")
    features = [question.feature for question in questions]
    text.array("features", unsigned_type(max(features)), features)
    best = [question.best for question in questions]
    text.array("classes", unsigned_type(max(best)), best)
    text.array("first_child", unsigned_type(max(start)), start)
    text.array("children", unsigned_type(max(children)), children)
    text.add(
        _QUESTIONS,
        **{"class": text.read("classes", "node")},
        feature=text.read("features", "node"),
        feature_of=text.read("features", "*node"),
        n_states=n_states,
        start_type=text.types["first_child"],
        start=text.read("first_child", "*node"),
        child=text.read("children", "start + code"),
    )

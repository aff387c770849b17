"""Fitted networks in files that other programs read and write: BIF and XMLBIF.

The class is the first variable, features follow in their order. Names are written in ASCII letters, digits and ``_``;
they begin with a letter or ``_``, or, of states, are whole numbers; they are no words of BIF; and of two variables they
differ in more than case. A minus before a number becomes ``minus_``, a run of other characters one ``_``, and a name
that is taken gets a number behind it. Columns without names are called x0, x1 and so on. States of a continuous column
are its intervals: ``up_to_2_5``, ``above_2_5_up_to_4_75``, ``above_4_75``, or ``any`` if it has no cuts.

What names do not tell is in a property of each variable, which other programs pass over: ``property tanlearn = {...}``,
an object of JSON with ``name``, the true name or null; ``column``, the number of the column, or -1 of the class; and
either ``categories``, the true values of the states, or ``cut_points`` and ``typical_values``: all of them values as
:mod:`tanlearn.files.models` describes them. The class may have ``calibration``, which other programs do not know: their
probabilities are those of the network itself, and the same classes are the most probable. Without a property, states
are strings, and columns are named and ordered as the variables are.

Probabilities are written with as many digits as it takes to make the same predictions from them, to the last bit (see
:mod:`tanlearn.files.discrete_network`). pyAgrum 3.3 reads BIF in single precision, and XMLBIF in double: there, take
XMLBIF.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.data.discretize import MDLPDiscretizer
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.estimators.composed import BayesNetClassifier
from tanlearn.estimators.generation import GenerativeMixin
from tanlearn.files.archive import fields
from tanlearn.files.bif import format_bif, parse_bif
from tanlearn.files.description import feature_names
from tanlearn.files.discrete_network import LARGEST_MODEL, LARGEST_NETWORK, ROUNDING, Definition, Network, Variable
from tanlearn.files.encoders import encoder_columns, restore_encoder
from tanlearn.files.regular_files import Kind, read_file, write_file
from tanlearn.files.values import Reader, Writer
from tanlearn.files.xmlbif import format_xmlbif, parse_xmlbif
from tanlearn.network.calibration import Calibration
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["read_bif", "read_xmlbif", "write_bif", "write_xmlbif"]

_FILE = Kind("network", "Name a file of a network", "Correct it, or write it again")
_WORDS = {"default", "discrete", "network", "probability", "property", "table", "type", "variable"}
#: Characters that end a property, or start a comment in one, as JSON writes them otherwise.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in ";=/"})


def write_bif(model: Any, path: str | os.PathLike[str], *, class_name: str | None = None) -> None:
    """Write a fitted classifier as a network in the Interchange Format, BIF.

    Parameters
    ----------
    model : classifier
        A fitted :class:`~tanlearn.NaiveBayesClassifier`, :class:`~tanlearn.BayesNetClassifier` or
        :class:`~tanlearn.TANClassifier`.
    path : str or path
        Where; what is there is replaced, by all of the network or not at all.
    class_name : str, optional
        Name of the class variable; by default the name in the file that the classifier was read from, or ``"class"``.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    TypeError
        If it is no network of one structure, as AODE is none.
    ValueError
        If its structure has a cycle, its tables are not normalised, a category is neither string nor number, or the
        name of the class is that of a feature. Nothing is written then.
    OSError
        If the file cannot be written. What stood there before is unchanged.

    See Also
    --------
    tanlearn.estimators.interchange : How names are written, and what is in the properties.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn import NaiveBayesClassifier, read_bif, write_bif
    >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bif(model, f"{folder}/outing.bif", class_name="where")
    ...     read_bif(f"{folder}/outing.bif", class_name="where").predict([["rain"]]).tolist()
    ['home']
    """
    write_file(path, format_bif(_to_network(model, class_name)).encode("ascii"), _FILE)


def write_xmlbif(model: Any, path: str | os.PathLike[str], *, class_name: str | None = None) -> None:
    """Write a fitted classifier as a network in XMLBIF.

    Parameters
    ----------
    model : classifier
        A fitted :class:`~tanlearn.NaiveBayesClassifier`, :class:`~tanlearn.BayesNetClassifier` or
        :class:`~tanlearn.TANClassifier`.
    path : str or path
        Where; what is there is replaced, by all of the network or not at all. pyAgrum wants the ending .bifxml.
    class_name : str, optional
        Name of the class variable; by default the name in the file that the classifier was read from, or ``"class"``.

    Raises
    ------
    NotFittedError, TypeError, ValueError, OSError
        As :func:`write_bif` does.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn import NaiveBayesClassifier, read_xmlbif, write_xmlbif
    >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_xmlbif(model, f"{folder}/outing.bifxml")
    ...     read_xmlbif(f"{folder}/outing.bifxml").predict([["rain"]]).tolist()
    ['home']
    """
    write_file(path, format_xmlbif(_to_network(model, class_name)).encode("ascii"), _FILE)


def read_bif(
    path: str | os.PathLike[str], *, class_name: str = "class", handle_unknown: str = "error"
) -> BayesNetClassifier:
    """Read a network from a file in the Interchange Format, BIF, as a classifier.

    Parameters
    ----------
    path : str or path
        The file, in UTF-8.
    class_name : str, default="class"
        Name of the variable to predict. It must have no parents; all others are features, which may have each other as
        parents. A feature that does not depend on the class has the same table for every class.
    handle_unknown : {"error", "missing"}, default="error"
        What to do with values that are no states of the network: raise, or treat as missing. The states of files that
        tanlearn did not write are strings, and 1 is none of "0" and "1".

    Returns
    -------
    BayesNetClassifier
        Fitted, with ``structure_`` and ``tables_`` of the file, and sorted classes. Distributions that miss a sum of 1
        by up to 0.01, as rounding makes them, are divided by their sums. Zeros stay zeros: for a row that has
        probability zero in every class, the class probabilities are predicted, with a warning.

    Raises
    ------
    ValueError
        If the file breaks a rule of the format, or the network one of those above; the message names file and
        variable, and the line if it is the format.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from tanlearn import read_bif
    >>> text = '''network sprinkler { }
    ... variable rain { type discrete [ 2 ] { yes, no }; }
    ... variable grass { type discrete [ 2 ] { wet, dry }; }
    ... probability ( rain ) { table 0.25, 0.75; }
    ... probability ( grass | rain ) { (yes) 1, 0; (no) 0.5, 0.5; }'''
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "sprinkler.bif").write_text(text)
    ...     model = read_bif(Path(folder, "sprinkler.bif"), class_name="rain")
    >>> model.classes_.tolist(), model.feature_names_in_.tolist()
    (['no', 'yes'], ['grass'])
    >>> import pandas as pd
    >>> model.predict_proba(pd.DataFrame({"grass": ["wet", "dry"]})).round(2).tolist()
    [[0.6, 0.4], [1.0, 0.0]]
    """
    return _read(path, parse_bif, class_name, handle_unknown)


def read_xmlbif(
    path: str | os.PathLike[str], *, class_name: str = "class", handle_unknown: str = "error"
) -> BayesNetClassifier:
    """Read a network from a file in XMLBIF as a classifier.

    Parameters
    ----------
    path : str or path
        The file. Entities may not be declared in it.
    class_name : str, default="class"
        Name of the variable to predict, as of :func:`read_bif`.
    handle_unknown : {"error", "missing"}, default="error"
        What to do with values that are no states of the network, as of :func:`read_bif`.

    Returns
    -------
    BayesNetClassifier
        As of :func:`read_bif`.

    Raises
    ------
    ValueError, OSError
        As :func:`read_bif` does.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn import NaiveBayesClassifier, read_xmlbif, write_xmlbif
    >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_xmlbif(model, f"{folder}/outing.bifxml")
    ...     read_xmlbif(f"{folder}/outing.bifxml", handle_unknown="missing").predict_proba([["snow"]]).tolist()
    [[0.5, 0.5]]
    """
    return _read(path, parse_xmlbif, class_name, handle_unknown)


def _read(
    path: str | os.PathLike[str], parse: Callable[[bytes], Network], class_name: str, handle_unknown: str
) -> BayesNetClassifier:
    """Return the classifier in a file."""
    encoder = TableEncoder(handle_unknown=handle_unknown)
    encoder._validate_params()
    content = read_file(path, _FILE)
    try:
        return _to_classifier(parse(content), class_name, encoder)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be read as a network: {error}") from error


def _to_network(model: Any, class_name: str | None) -> Network:
    """Return a fitted classifier as a network, with a note to each variable."""
    if not isinstance(model, GenerativeMixin):
        raise TypeError(
            f"{type(model).__name__} is no Bayesian network of one structure, so no network can be written. Take a "
            f"NaiveBayesClassifier, BayesNetClassifier or TANClassifier."
        )
    check_is_fitted(model)
    class_name = getattr(model, "class_name_", "class") if class_name is None else class_name
    if not model.structure_.is_acyclic:
        raise ValueError("a structure with a cycle is no Bayesian network, and has no file. Learn one without cycles.")
    tables, names = model.tables_, feature_names(model, class_name)
    _check_tables(tables)
    columns = encoder_columns(model.encoder_)
    named = hasattr(model, "feature_names_in_")
    notes: list[dict[str, Any]] = [{"name": class_name, "column": -1, "categories": model.classes_}]
    if model.calibration_ != Calibration():
        notes[0]["calibration"] = asdict(model.calibration_)
    notes += [{"name": name if named else None, "column": i, **columns[i]} for i, name in enumerate(names)]
    written = _distinct(map(_variable_name, [class_name, *names]), ignore_case=True)
    variables = {
        name: Variable(name, _state_names(note), _format_note(note), "")
        for name, note in zip(written, notes, strict=True)
    }
    definitions = {written[0]: Definition((), tables.log_prior)}
    for i, parents in enumerate(model.structure_.parents.tolist()):
        given = tuple(written[j + 1] for j in parents if j >= 0)
        # Of a feature with parents p and q: [state][p][q][class] in the tables, [class][p][q][state] in files.
        definitions[written[i + 1]] = Definition((written[0], *given), np.swapaxes(tables[i], 0, -1))
    return Network(variables, definitions)


def _check_tables(tables: Tables) -> None:
    """Refuse tables that a file cannot hold."""
    distribution = tables.layout.distributions()
    error = np.abs(np.bincount(distribution, np.exp(tables.cells)) - 1)
    if error.max() > 2 * ROUNDING:  # as much as a file may miss it by, with other rounding of sums
        raise ValueError(
            f"the tables are not normalised: probabilities that should sum to 1 miss it by {error.max():.2g}. "
            f"Files hold probabilities: learn the parameters with a learner that normalises, or keep the model by save."
        )
    if len(tables.cells) > LARGEST_MODEL:
        raise ValueError(f"the tables have {len(tables.cells)} numbers, more than the {LARGEST_MODEL} of a file.")


def _to_classifier(network: Network, class_name: str, encoder: TableEncoder) -> BayesNetClassifier:
    """Return the classifier that a network is."""
    for name, variable in network.variables.items():
        if name not in network.definitions:
            raise ValueError(f"{variable.place}: variable {name!r} has no probabilities: add them.")
    notes = {name: _read_note(variable) for name, variable in network.variables.items()}
    by_name = {name: name for name in notes} | {note["name"]: name for name, note in notes.items() if note["name"]}
    if class_name not in by_name:
        remedy = f"pass as class_name one of {', '.join(notes)}" if notes else "the file declares none"
        raise ValueError(f"there is no variable {class_name!r}: {remedy}.")
    target = by_name[class_name]
    features = [name for name in notes if name != target]
    columns = [notes[name]["column"] for name in features]
    if {*columns} == {*range(len(features))}:  # in the order of the table that the model was fitted to
        features = [features[i] for i in np.argsort(columns)]
    structure = _structure(network, target, features)
    classes, order = _classes(target, notes[target])
    pieces = [network.definitions[target].log_table[order]]
    definitions = [network.definitions[name] for name in features]
    n_cells = sum(table.size * (1 if target in given else len(order)) for given, table in definitions)
    if n_cells > LARGEST_MODEL:
        raise ValueError(
            f"the tables, repeated for each of the {len(order)} classes where {target!r} is no parent, have {n_cells} "
            f"numbers, more than {LARGEST_MODEL}. Pass a class_name with fewer states, or remove parents."
        )
    for i, name in enumerate(features):
        parents = [features[j] for j in structure.parents[i] if j >= 0]
        pieces.append(_cells(network, target, name, parents, order).ravel())

    model = BayesNetClassifier(structure=structure, encoder=clone(encoder))
    known = [{k: v for k, v in notes[name].items() if k not in ("name", "column", "calibration")} for name in features]
    has_cuts = any("cut_points" in column for column in known)
    model.encoder_ = restore_encoder(encoder, MDLPDiscretizer() if has_cuts else None, known)
    model.classes_ = classes
    model.class_name_ = notes[target]["name"] or target
    model.n_features_in_ = len(features)
    names = [notes[name]["name"] for name in features]
    if names != [None] * len(names):
        names = [name if given is None else given for name, given in zip(features, names, strict=True)]
        if len({*names}) < len(names):
            raise ValueError("two properties tanlearn give the same name: remove them.")
        model.feature_names_in_ = np.array(names, dtype=object)
        model.encoder_.feature_names_in_ = model.feature_names_in_.copy()
    calibration = notes[target].get("calibration", {})
    model._was_loaded = True
    model._set_state({"structure": structure, "cells": np.concatenate(pieces), "calibration": calibration})
    return model


def _classes(target: str, note: dict[str, Any]) -> tuple[AnyArray, AnyArray]:
    """Return the classes, sorted, and the numbers of their states."""
    values = note.get("categories", np.array([]))
    states = values.tolist()
    try:
        order = np.array(sorted(range(len(states)), key=states.__getitem__), dtype=np.intp)
        differ = all(states[i] < states[j] for i, j in itertools.pairwise(order))
    except TypeError:
        differ = False
    if len(states) < 2 or not differ:
        raise ValueError(
            f"the class {target!r} must have at least two states, all strings or all numbers, and no intervals. Pass "
            f"another class_name."
        )
    return values[order], order


def _structure(network: Network, target: str, features: list[str]) -> Structure:
    """Return who is whose parent, after checking that it is a classifier's structure."""
    if not features:
        raise ValueError(f"there must be a variable beside the class {target!r}: there is nothing to predict it from.")
    if network.definitions[target].parents:
        given = ", ".join(network.definitions[target].parents)
        raise ValueError(
            f"variable {target!r} has parents ({given}), but the class must have none. Pass another class_name, or "
            f"turn the edges in the program that made the network."
        )
    number = {name: i for i, name in enumerate(features)}
    families = [[number[p] for p in network.definitions[name].parents if p != target] for name in features]
    table = np.full((len(features), max(1, *map(len, families))), -1)
    for row, parents in zip(table, families, strict=True):
        row[: len(parents)] = parents
    structure = Structure(table, allow_cycles=True)
    if not structure.is_acyclic:
        raise ValueError("the parents form a cycle, so this is no Bayesian network. Remove an edge of it.")
    return structure


def _cells(network: Network, target: str, name: str, parents: list[str], order: AnyArray) -> FloatArray:
    """Return the table of a feature as [state][state of 1st parent][state of 2nd parent][class]."""
    given, log_table = network.definitions[name]
    axes = [given.index(parent) for parent in parents]
    if target in given:
        return np.transpose(log_table, [len(given), *axes, given.index(target)])[..., order]
    if log_table.size * len(order) > LARGEST_NETWORK:
        raise ValueError(f"the table of {name!r}, repeated for every class, has more than {LARGEST_NETWORK} numbers.")
    return np.repeat(np.transpose(log_table, [len(given), *axes])[..., np.newaxis], len(order), axis=-1)


def _state_names(column: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the states of a column in files."""
    if "categories" in column:
        values = column["categories"].tolist() or ["unseen"]
        return tuple(_distinct(map(_state_name, values), ignore_case=False))
    cuts = [_plain(repr(cut)) for cut in column["cut_points"].tolist()]
    lower = ["", *(f"above_{cut}" for cut in cuts)]
    upper = [*(f"up_to_{cut}" for cut in cuts), ""]
    names = ("_".join(filter(None, pair)) or "any" for pair in zip(lower, upper, strict=True))
    return tuple(_distinct(names, ignore_case=False))


def _plain(text: str) -> str:
    """Return a text in the characters of names."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", re.sub(r"^-(?=[.0-9])", "minus_", text))
    return f"{name}_" if name in _WORDS else name


def _state_name(value: Any) -> str:
    """Return the name of a category."""
    name = _plain(value.decode("latin-1") if isinstance(value, bytes) else str(value))
    return name if re.fullmatch(r"[A-Za-z_].*|[0-9]+", name) else f"_{name}"


def _variable_name(text: str) -> str:
    """Return the name of a variable."""
    # Behind these words pgmpy's reader of BIF takes whatever looks like a number for one, as in defaulted or table5.
    name = re.sub(r"(table|default)(?=[0-9eE])", r"\1_", _plain(text))
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def _distinct(names: Iterable[str], *, ignore_case: bool) -> list[str]:
    """Return names with numbers behind those that are taken; pgmpy's BIF does not tell variables by case."""
    taken: set[str] = set()
    counts: dict[str, int] = {}
    result = []
    for name in names:
        free = name
        while (key := free.lower() if ignore_case else free) in taken:
            counts[name] = counts.get(name, 1) + 1
            free = f"{name}_{counts[name]}"
        taken.add(key)
        result.append(free)
    return result


def _format_note(note: dict[str, Any]) -> str:
    """Return what names do not tell, as JSON."""
    encoded = {}
    for key, value in note.items():
        is_array = isinstance(value, np.ndarray)
        plain = [v.item() if isinstance(v, np.generic) else v for v in value.tolist()] if is_array else value
        encoded[key] = Writer().encode(plain, "encoder_", key)
    text = json.dumps(encoded, allow_nan=False).translate(_ESCAPES)
    # Readers that look for quoted text in properties know no escaped quotes.
    return re.sub(r"\\(.)", lambda found: r"\u0022" if found[1] == '"' else found[0], text)


def _read_note(variable: Variable) -> dict[str, Any]:
    """Return name, column and values of a variable, as its note tells; without one, states are strings."""
    if variable.note is None:
        return {"name": variable.name, "column": None, "categories": np.array(variable.states, dtype=object)}
    try:
        note = {k: Reader({}).decode(value) for k, value in json.loads(variable.note).items()}
        column = _read_values(note)
        told = {"name": note["name"], "column": note["column"], **column}
        if "calibration" in note:
            told["calibration"] = asdict(Calibration.of_state(note["calibration"]))
        fields(note, *told)
        if type(told["name"]) not in (str, type(None)) or type(told["column"]) is not int:
            raise ValueError("name must be a string or null, and column an integer.")
        if variable.states != _state_names(column):
            raise ValueError("its values are not those that the states are named after.")
    except Exception as error:  # whatever a property that somebody has changed brings about
        raise ValueError(
            f"{variable.place}: variable {variable.name!r}: its property tanlearn breaks a rule ({error}). Remove it, "
            f"and the states will be strings, or write the file again."
        ) from error
    return told


def _read_values(note: dict[str, Any]) -> dict[str, AnyArray]:
    """Return what a note tells of the states, as arrays."""
    if "categories" not in note:
        return {name: np.array(note[name], dtype=np.float64) for name in ("cut_points", "typical_values")}
    values = note["categories"]
    if not {*map(type, values)} <= {bool, int, float, str, bytes}:
        raise ValueError("its values must be strings and numbers.")
    numeric = values and all(type(value) in (bool, int, float) for value in values)
    categories: AnyArray = np.array(values) if numeric else np.empty(len(values), dtype=object)
    categories[:] = values
    return {"categories": categories}

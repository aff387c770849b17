"""Exchange of fitted networks with other programs, through files in BIF and XMLBIF.

The class is the first variable, and the features follow in their order. Names consist of ASCII letters, digits and
``_``. They begin with a letter or ``_``. Names of states may also be non-negative integers. Names differ from keywords
of BIF, and the names of variables differ from each other even if case is ignored. A minus sign before a number becomes
``minus_``, each sequence of other characters becomes one ``_``, and a number is appended to duplicate names. Columns
without names are called x0, x1 and so on. The states of a continuous column are its intervals: ``up_to_2_5``,
``above_2_5_up_to_4_75``, ``above_4_75``, or ``any`` for a single interval. The category for missing values is the last
state, ``missing``.

All other information is stored in a property of each variable, ``property tanlearn = {...}``, which other programs
ignore. The property is a JSON object with ``name``, the original name or null; ``column``, the column number, or -1 for
the class; and either ``categories``, the original values of the states, or ``cut_points`` and ``typical_values``. It
may also have ``has_missing_category``, which is true if the last state is the category for missing values. Values are
encoded as in :mod:`tanlearn.files.models`. The property of the class may have ``calibration``. Other programs ignore it
and return the uncalibrated probabilities of the network, whose most probable classes are the same. If a file has no
such properties, states are strings, and columns have the names and the order of the variables.

Probabilities are written with enough digits to reproduce the predictions bit for bit (see
:mod:`tanlearn.files.discrete_network`). For pyAgrum, use XMLBIF: version 3.3 reads BIF in single precision, and XMLBIF
in double precision.
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
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.encoding.mdlp_discretizer import MDLPDiscretizer
from tanlearn.encoding.stored_values import fields
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.bayes_net_classifier import BayesNetClassifier
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.files.bif import format_bif, parse_bif
from tanlearn.files.description import feature_names
from tanlearn.files.discrete_network import LARGEST_MODEL, LARGEST_NETWORK, ROUNDING, Definition, Network, Variable
from tanlearn.files.encoders import encoder_columns, restore_encoder
from tanlearn.files.regular_files import Kind, read_file, write_file
from tanlearn.files.values import Reader, Writer
from tanlearn.files.xmlbif import format_xmlbif, parse_xmlbif
from tanlearn.models.calibration import Calibration
from tanlearn.models.tables import Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure, padded_parents

__all__ = ["read_bif", "read_xmlbif", "write_bif", "write_xmlbif"]

_FILE = Kind("network", "Name a file of a network", "Correct it, or write it again")
_WORDS = {"default", "discrete", "network", "probability", "property", "table", "type", "variable"}
#: JSON escapes for characters that would end a property or start a comment in it.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in ";=/"})


def write_bif(model: Any, path: str | os.PathLike[str], *, class_name: str | None = None) -> None:
    """Write a fitted classifier as a network in the Bayesian Interchange Format (BIF).

    Parameters
    ----------
    model : classifier
        A fitted :class:`~tanlearn.NaiveBayesClassifier`, :class:`~tanlearn.BayesNetClassifier`,
        :class:`~tanlearn.TANClassifier` or :class:`~tanlearn.TermNetClassifier`.
    path : str or path
        Path of the file. An existing file is replaced, atomically.
    class_name : str, optional
        Name of the class variable. By default, a classifier that was read from a file keeps the name in that file. For
        other classifiers, the name is ``"class"``.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    TypeError
        If the classifier has several structures, such as AODE, or is a :class:`~tanlearn.TermNetClassifier` with
        several parents per feature.
    ValueError
        If the structure has a cycle, the CPTs are not normalized, a category is not a string, a number or a boolean, or
        ``class_name`` is the name of a feature. No file is written in these cases.
    OSError
        If the file cannot be written. An existing file is then unchanged.

    See Also
    --------
    tanlearn.estimators.bif_and_xmlbif : Names and properties in the file.

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
        Path of the file. An existing file is replaced, atomically. pyAgrum needs the extension .bifxml.
    class_name : str, optional
        Name of the class variable. By default, a classifier that was read from a file keeps the name in that file. For
        other classifiers, the name is ``"class"``.

    Raises
    ------
    NotFittedError, TypeError, ValueError, OSError
        Under the same conditions as in :func:`write_bif`.

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
    path: str | os.PathLike[str],
    *,
    class_name: str = "class",
    handle_unknown: str = "error",
    equivalent_sample_size: float | None = None,
) -> BayesNetClassifier:
    """Read a classifier from a network in the Bayesian Interchange Format (BIF).

    Parameters
    ----------
    path : str or path
        Path of the file, in UTF-8.
    class_name : str, default="class"
        Name of the variable to predict. It must have no parents. All other variables are features, and may have other
        features as parents. A feature that is not a child of the class has the same CPT for every class.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of values that are not states of the network: raise an error, or treat them as missing. If a file was
        not written by tanlearn, all states are strings, so the number 1 is not equal to the state "1".
    equivalent_sample_size : float, optional
        Weight of each distribution of the network, as a number of rows above 0. Set it if ``partial_fit`` should update
        the network with new rows. By default, the network cannot be updated.

    Returns
    -------
    BayesNetClassifier
        Fitted classifier with the ``structure_`` and ``tables_`` of the file, and with sorted classes. Distributions
        whose sums are between 0.99 and 1.01, due to rounding, are divided by their sums. Zeros are kept. If a row has
        probability zero in every class, the class prior is predicted, with a warning.

    Raises
    ------
    ValueError
        If the file or the network is invalid. The message names the file, the variable and, if the format is invalid,
        the line. The error is also raised if ``equivalent_sample_size`` is not a positive number, or if it is set
        although the probabilities of the network are calibrated.
    OSError
        If the file cannot be read.

    Notes
    -----
    With a Dirichlet prior of equivalent sample size s, ``partial_fit`` computes the posterior mean::

        theta_x|h = (n_xh + s p(x | h)) / (n_h + s)

    where n_xh is the number of observed rows with value x and the values h of class and parents, n_h is the number of
    rows with h, and p are the probabilities in the file. The class probabilities are updated in the same way. The CPT
    of a feature that is not a child of the class may depend on the class after an update.

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
    return _read(path, parse_bif, class_name, handle_unknown, equivalent_sample_size)


def read_xmlbif(
    path: str | os.PathLike[str],
    *,
    class_name: str = "class",
    handle_unknown: str = "error",
    equivalent_sample_size: float | None = None,
) -> BayesNetClassifier:
    """Read a classifier from a network in XMLBIF.

    Parameters
    ----------
    path : str or path
        Path of the file. It must not declare entities.
    class_name : str, default="class"
        Name of the variable to predict, as in :func:`read_bif`.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of values that are not states of the network, as in :func:`read_bif`.
    equivalent_sample_size : float, optional
        Weight of each distribution in rows, for updates by ``partial_fit``, as in :func:`read_bif`.

    Returns
    -------
    BayesNetClassifier
        Fitted classifier, as returned by :func:`read_bif`.

    Raises
    ------
    ValueError, OSError
        Under the same conditions as in :func:`read_bif`.

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
    return _read(path, parse_xmlbif, class_name, handle_unknown, equivalent_sample_size)


def _read(
    path: str | os.PathLike[str],
    parse: Callable[[bytes], Network],
    class_name: str,
    handle_unknown: str,
    equivalent_sample_size: float | None,
) -> BayesNetClassifier:
    """Read a file, and return the network as a classifier."""
    size: Any = equivalent_sample_size
    if size is not None and not (isinstance(size, (int, float, np.number)) and 0 < size < np.inf):
        raise ValueError(f"equivalent_sample_size must be a positive number of rows, got {size!r}.")
    encoder = TableEncoder(handle_unknown=handle_unknown)
    encoder._validate_params()
    content = read_file(path, _FILE)
    try:
        model = _to_classifier(parse(content), class_name, encoder)
        if size is not None:
            _count_as_rows(model, float(size))
        return model
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be read as a network: {error}") from error


def _count_as_rows(model: BayesNetClassifier, size: float) -> None:
    """Convert CPTs to counts for ``partial_fit``, as if each distribution were estimated from ``size`` rows."""
    if model.calibration_ != Calibration():
        raise ValueError(
            "equivalent_sample_size must not be set, because the probabilities of the network are calibrated, so "
            "rows cannot be added to its CPTs. Leave it out."
        )
    model.parameters = MaximumLikelihood(alpha=0.0)
    model.counts_ = FamilyCounts(model.tables_.layout)
    model.counts_.cells = size * np.exp(model.tables_.cells)


def _to_network(model: Any, class_name: str | None) -> Network:
    """Convert a fitted classifier to a network with notes on its variables."""
    if not isinstance(model, NetworkClassifier) or not hasattr(model, "sample"):
        raise TypeError(
            f"the classifier must have a single structure with normalized CPTs, got {type(model).__name__}. Use a "
            f"NaiveBayesClassifier, BayesNetClassifier, TANClassifier, or a TermNetClassifier with max_parents=1."
        )
    check_is_fitted(model)
    class_name = getattr(model, "class_name_", "class") if class_name is None else class_name
    if not model.structure_.is_acyclic:
        raise ValueError("a network in a file must not have a cycle. Learn a structure without cycles.")
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
        # Axes for parents p and q: [state][p][q][class] in the CPTs, [class][p][q][state] in files.
        definitions[written[i + 1]] = Definition((written[0], *given), np.swapaxes(tables[i], 0, -1))
    return Network(variables, definitions)


def _check_tables(tables: Tables) -> None:
    """Raise an error for CPTs that a file cannot contain."""
    distribution = tables.layout.distributions()
    error = np.abs(np.bincount(distribution, np.exp(tables.cells)) - 1)
    if error.max() > 2 * ROUNDING:  # the tolerance for files, plus rounding errors of sums
        raise ValueError(
            f"CPTs in a file must be normalized, but sums of probabilities differ from 1 by up to {error.max():.2g}. "
            f"Fit the parameters with a learner that returns normalized CPTs, or use save."
        )
    if len(tables.cells) > LARGEST_MODEL:
        raise ValueError(
            f"a BIF or XMLBIF file may have at most {LARGEST_MODEL:,} CPT entries, but this network has "
            f"{len(tables.cells):,}. Fit with fewer parents."
        )


def _to_classifier(network: Network, class_name: str, encoder: TableEncoder) -> BayesNetClassifier:
    """Convert a network to a classifier."""
    for name, variable in network.variables.items():
        if name not in network.definitions:
            raise ValueError(f"{variable.position}: variable {name!r} has no probabilities. Add its CPT to the file.")
    notes = {name: _read_note(variable) for name, variable in network.variables.items()}
    by_name = {name: name for name in notes} | {note["name"]: name for name, note in notes.items() if note["name"]}
    if class_name not in by_name:
        remedy = f"Pass one of these names as class_name: {', '.join(notes)}" if notes else "The file declares none"
        raise ValueError(f"the file has no variable {class_name!r}. {remedy}.")
    target = by_name[class_name]
    features = [name for name in notes if name != target]
    columns = [notes[name]["column"] for name in features]
    if {*columns} == {*range(len(features))}:  # restore the column order of fit
        features = [features[i] for i in np.argsort(columns)]
    structure = _structure(network, target, features)
    classes, order = _classes(target, notes[target])
    pieces = [network.definitions[target].log_table[order]]
    definitions = [network.definitions[name] for name in features]
    n_cells = sum(table.size * (1 if target in given else len(order)) for given, table in definitions)
    if n_cells > LARGEST_MODEL:
        raise ValueError(
            f"the CPTs must have at most {LARGEST_MODEL} numbers, but have {n_cells}, because they are repeated for "
            f"each of the {len(order)} classes if {target!r} is not a parent. Pass a class_name with fewer states, "
            f"or remove parents."
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
            raise ValueError("two properties named tanlearn contain the same name. Remove these properties.")
        model.feature_names_in_ = np.array(names, dtype=object)
        model.encoder_.feature_names_in_ = model.feature_names_in_.copy()
    calibration = notes[target].get("calibration", {})
    model._was_loaded = True
    model._set_state({"structure": structure, "cells": np.concatenate(pieces), "calibration": calibration})
    return model


def _classes(target: str, note: dict[str, Any]) -> tuple[AnyArray, AnyArray]:
    """Return the sorted classes, and the positions of their states."""
    values = note.get("categories", np.array([]))
    states = values.tolist()
    try:
        order = np.array(sorted(range(len(states)), key=states.__getitem__), dtype=np.intp)
        differ = all(states[i] < states[j] for i, j in itertools.pairwise(order))
    except TypeError:
        differ = False
    if len(states) < 2 or not differ:
        raise ValueError(
            f"the class {target!r} must have at least two states, which must be all strings or all numbers, not "
            f"intervals. Pass another class_name."
        )
    return values[order], order


def _structure(network: Network, target: str, features: list[str]) -> Structure:
    """Return the structure of the features, after checking that it is valid for a classifier."""
    if not features:
        raise ValueError(
            f"a network must have at least one feature, but the class {target!r} is its only variable. Add a feature."
        )
    if network.definitions[target].parents:
        given = ", ".join(network.definitions[target].parents)
        raise ValueError(
            f"the class must have no parents, but variable {target!r} has parents ({given}). Pass another "
            f"class_name, or reverse the edges in the program that wrote the network."
        )
    number = {name: i for i, name in enumerate(features)}
    families = [[number[p] for p in network.definitions[name].parents if p != target] for name in features]
    structure = Structure(padded_parents(families), allow_cycles=True)
    if not structure.is_acyclic:
        raise ValueError("the parents form a cycle, so this is not a Bayesian network. Remove an edge of the cycle.")
    return structure


def _cells(network: Network, target: str, name: str, parents: list[str], order: AnyArray) -> FloatArray:
    """Return the CPT of a feature as [state][state of 1st parent][state of 2nd parent][class]."""
    given, log_table = network.definitions[name]
    axes = [given.index(parent) for parent in parents]
    if target in given:
        return np.transpose(log_table, [len(given), *axes, given.index(target)])[..., order]
    if log_table.size * len(order) > LARGEST_NETWORK:
        raise ValueError(
            f"a CPT must have at most {LARGEST_NETWORK} entries, but the CPT of {name!r}, repeated for every class, "
            f"has more. Remove parents."
        )
    return np.repeat(np.transpose(log_table, [len(given), *axes])[..., np.newaxis], len(order), axis=-1)


def _state_names(column: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the states of a column."""
    if "categories" in column:
        names = [_state_name(value) for value in column["categories"].tolist() or ["unseen"]]
    else:
        cuts = [_plain(repr(cut)) for cut in column["cut_points"].tolist()]
        lower = ["", *(f"above_{cut}" for cut in cuts)]
        upper = [*(f"up_to_{cut}" for cut in cuts), ""]
        names = ["_".join(filter(None, pair)) or "any" for pair in zip(lower, upper, strict=True)]
    if "has_missing_category" in column:
        names.append("missing")
    return tuple(_distinct(names, ignore_case=False))


def _plain(text: str) -> str:
    """Replace the characters of a string that are not allowed in names."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", re.sub(r"^-(?=[.0-9])", "minus_", text))
    return f"{name}_" if name in _WORDS else name


def _state_name(value: Any) -> str:
    """Return the name of a category in the file."""
    name = _plain(value.decode("latin-1") if isinstance(value, bytes) else str(value))
    return name if re.fullmatch(r"[A-Za-z_].*|[0-9]+", name) else f"_{name}"


def _variable_name(text: str) -> str:
    """Return the name of a variable in the file."""
    # pgmpy's BIF reader parses everything after these words as numbers, even in names such as table5 or defaulted.
    name = re.sub(r"(table|default)(?=[0-9eE])", r"\1_", _plain(text))
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def _distinct(names: Iterable[str], *, ignore_case: bool) -> list[str]:
    """Return the names, with numbers appended to duplicates. pgmpy's BIF reader ignores the case of variable names."""
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
    """Return the property of a variable as JSON."""
    encoded = {}
    for key, value in note.items():
        is_array = isinstance(value, np.ndarray)
        plain = [v.item() if isinstance(v, np.generic) else v for v in value.tolist()] if is_array else value
        encoded[key] = Writer().encode(plain, "encoder_", key)
    text = json.dumps(encoded, allow_nan=False).translate(_ESCAPES)
    # Some readers extract quoted text from properties, but do not support escaped quotes.
    return re.sub(r"\\(.)", lambda found: r"\u0022" if found[1] == '"' else found[0], text)


def _read_note(variable: Variable) -> dict[str, Any]:
    """Return name, column and values of a variable from its property. Without a property, states are strings."""
    if variable.note is None:
        return {"name": variable.name, "column": None, "categories": np.array(variable.states, dtype=object)}
    try:
        note = {k: Reader({}).decode(value) for k, value in json.loads(variable.note).items()}
        column = _read_values(note)
        told = {"name": note["name"], "column": note["column"], **column}
        if note.get("has_missing_category") is True:
            told["has_missing_category"] = True
        if "calibration" in note:
            told["calibration"] = asdict(Calibration.of_state(note["calibration"]))
        fields(note, *told)
        if type(told["name"]) not in (str, type(None)) or type(told["column"]) is not int:
            raise ValueError("name must be a string or null, and column must be an integer")
        if variable.states != _state_names(told):
            raise ValueError("its values do not match the names of the states")
    except Exception as error:  # an edited property can cause any error
        raise ValueError(
            f"{variable.position}: variable {variable.name!r}: its property 'tanlearn' is invalid ({error}). "
            f"Write the file again, or remove the property; the states are then read as strings."
        ) from error
    return told


def _read_values(note: dict[str, Any]) -> dict[str, AnyArray]:
    """Return the categories in a note, or its cut points and typical values, as arrays."""
    if "categories" not in note:
        return {name: np.array(note[name], dtype=np.float64) for name in ("cut_points", "typical_values")}
    values = note["categories"]
    if not {*map(type, values)} <= {bool, int, float, str, bytes}:
        raise ValueError("its values must be strings and numbers")
    numeric = values and all(type(value) in (bool, int, float) for value in values)
    categories: AnyArray = np.array(values) if numeric else np.empty(len(values), dtype=object)
    categories[:] = values
    return {"categories": categories}

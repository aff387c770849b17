"""Fitted classifiers in files: without pickle, whole or not at all, and read by whoever knows the format.

What a file keeps, and so what a loaded classifier has: the class of the classifier, its parameters (those of nested
learners, losses and encoders too), ``classes_``, ``encoder_``, ``n_features_in_``, ``feature_names_in_``, and what
predicts: ``structure_``, ``tables_`` and ``calibration_``, ``structure_probabilities_`` and ``loss_`` of
:class:`~tanlearn.TANClassifier`, ``forest_`` of :class:`~tanlearn.BayesForestClassifier`, or ``ensemble_`` of AODE.
Predictions are the same to the last bit.

What it does not keep: what learners found on the way (``parameters_``, ``structure_learner_``, ``candidates_``,
``history_``, ``n_iter_``) and counts of a stream (``counts_``), so that a loaded classifier cannot go on with
``partial_fit``; the path of a checkpoint; random generators, callbacks, and objects of classes that are not tanlearn's
own, which :func:`save` refuses.

Notes
-----
*Format 1.* A file is a zip archive without compression, encryption or folders. Its comment is 64 hexadecimal digits:
the SHA-256 of all bytes of the file before the comment. Its first member is ``tanlearn.json``; the others are
``0.npy``, ``1.npy`` and so on, in this order. Later formats keep this paragraph.

``tanlearn.json`` is ASCII, one JSON object with the keys

- ``format``: ``"tanlearn model"``;
- ``version``: 1, an integer;
- ``tanlearn``: the version of the library that wrote the file;
- ``members``: for every other member, in their order, an object with ``name`` and ``sha256``, the digest of its bytes;
- ``model``: an object with the keys

  - ``class``: the class of the classifier by its name in ``tanlearn`` or ``tanlearn.baselines``;
  - ``parameters``: its constructor's parameters, an object of values. Those left out have their defaults;
  - ``classes``: the classes, an array or objects (see below), at least two, sorted;
  - ``feature_names``: a list of strings, one a column, or null;
  - ``encoder``: an object with ``parameters`` (of ``TableEncoder``), ``discretizer`` (the parameters of the fitted
    ``MDLPDiscretizer``, or null if no column has cuts), ``discretizer_class``, ``"QuantileDiscretizer"`` if it is one
    and left out otherwise, and ``columns``: for every column an object. Either it has ``categories``, an array of
    numbers or objects: a value equal to the k-th, counted from 0, has the code k, any other is missing, or an error if
    ``handle_unknown`` among the parameters says so. Or it has ``cut_points``, an array of
    increasing float64, the code of a number being how many cuts are below it, and ``typical_values``, a float64 for
    every code that stands for it where rows are drawn or completed, or nan. So a column has
    ``max(1, number of categories)`` or ``1 + number of cuts`` states, at most 65,535;
  - ``state``: an object of values: of classes with tables ``structure`` and ``cells``, a float64 array of
    log-probabilities. First come those of the classes; then, feature by feature, those of its state given the states
    of its parents and the class, a table [state][state of 1st parent][state of 2nd parent][class] whose last index runs
    fastest; a feature with fewer parents lacks these indices. Tables that back off to fewer parents are kept as
    counts: ``cells`` are then those of the classes alone, and ``back_off`` is a dict of arrays. ``n_entries``, int64,
    says for every feature how many combinations of parents, state and class rows have shown; ``values``, uint16, are
    these, feature by feature and sorted, the number of states standing for a missing parent and all behind it, and
    ``counts`` how often (int64 or float64); ``class_counts`` are those of the classes, ``concentrations`` the m of the
    levels, from no parent on. ``level_counts`` is None, or float64, of the entries of all levels, feature by
    feature: numbers in place of the sums of ``counts`` over longer contexts. ``calibration``, a dict of
    ``temperature``, ``power`` and ``pivot``: sums of them become probabilities of the classes as
    :class:`~tanlearn.Calibration` says. ``TANClassifier`` has ``structure_probabilities`` too: for every feature a
    dict from parents, -1 for none, to probabilities; and ``loss``, an object: what it was trained with.
    ``AODEClassifier`` has other keys. With the states of all features numbered through, and that of a constant feature
    at the end (V in all): ``is_parent``, bool of shape (V,); ``log_parent``, float32 of shape (V * n_classes,), the log
    joint of state and class; ``log_child``, float32 of shape (V * V * n_classes,), indexed [parent][child][class], the
    log-probability of the child given both.
    ``BayesForestClassifier`` has arrays of E members, d features and L levels, one more than the most parents:
    ``n_states``, int64 (E, d), how many values a member tells apart; ``merged``, uint16 (E, the sum of the encoder's
    states + 1), feature by feature a member's code of every code and, last, of a missing one, where the number of its
    values or more means missing; ``parents``, int64 (E, d, L - 1), -1 for none; ``weights``, float64 (E, d, L);
    ``log_prior``, ``log_frequency`` and ``shift``, float64 (n_classes,); the numbers ``doubt`` and ``is_average``, a
    bool. The other arrays stand one behind the other, member by member, each as long as the rows of ``sizes``, int64
    (E, 10), say, in this order: ``root``, ``children``, ``branch``, ``class_start``, ``classes``, ``value_start``,
    ``values``, ``cell_start``, ``gain``, ``unseen``; ``branch``, ``classes`` and ``values`` are uint16, ``gain`` and
    ``unseen`` float32, the others int64. ``root[f]`` is the context of family f without parents. What context g is
    split into, ``children[g]`` to ``children[g + 1]``, has the parents' values ``branch``; it has seen ``classes`` from
    ``class_start[g]`` and ``values`` from ``value_start[g]`` on, both ascending, and adds to the score of a class
    ``gain``, from ``cell_start[g]`` on indexed [value][class], or, of other values, ``unseen``, at the class's place;
    both times the weight of member, feature and level. A row goes from the root along its parents' values as far as
    there are contexts; below one that has not seen the child's value, ``unseen`` counts. To these sums comes
    ``log_prior``, and p is their softmax, or, if ``is_average``, the mean of the members' own, each with the prior;
    log((1 - doubt) p + doubt / n_classes) + ``shift`` is the score. ``log_frequency`` is what a later prior is compared
    with.

A *value* is null, true, false, a string, an integer (of any size), a float (always with a point or an exponent, and as
many digits as tell it from all others), a list of values, or an object, whose ``kind`` says what it is and which other
keys it has:

=============== ================================================ ====================================================
kind            other keys                                       meaning
=============== ================================================ ====================================================
``float``       ``value``: ``"inf"``, ``"-inf"`` or ``"nan"``    what JSON has no number for
``bytes``       ``hex``                                          bytes in hexadecimal digits
``tuple``       ``items``: values                                a tuple
``dict``        ``items``: lists of two values                   a dictionary; the keys differ
``scalar``      ``type``, ``value``                              a NumPy scalar: bool, int8 ... uint64, float16 ...
                                                                 float64, str or bytes
``objects``     ``items``: values                                a one-dimensional array of these
``array``       ``member``                                       an array of numbers or strings
``structure``   ``parents``: a member, ``cyclic``: bool          int64 of shape (n_features, k), -1 for none, which
                                                                 stands last; whether a cycle was allowed, and is there
``candidates``  ``parents`` and ``group``: members,              see :class:`~tanlearn.CandidateSets`; int64
                ``arborescence``, ``allow_cycles``
``object``      ``class``, ``parameters``                        a learner, loss or encoder, not fitted
=============== ================================================ ====================================================

Every member is referred to once. Members are of NumPy's .npy format, version 1.0, in C order and little-endian, of
bool, integers, float16 to float64, ``U`` or ``S``; the header's keys stand in alphabetical order, as NumPy writes them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn.data.categories import LARGEST_N_STATES
from tanlearn.data.cuts import CutDiscretizer
from tanlearn.data.quantiles import QuantileDiscretizer
from tanlearn.data.table_encoder import CUT_DISCRETIZERS, TableEncoder
from tanlearn.files.archive import ExplainedError, fields, pack, read_archive, unpack, write_file
from tanlearn.files.values import Reader, Writer, is_registered

__all__ = ["encoder_columns", "load", "restore_encoder", "save"]

_QUANTILES = "QuantileDiscretizer"


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier to a file.

    The file is there in whole or not at all: it is written beside, brought to the disk, and renamed. What stood there
    before stays until then.

    Parameters
    ----------
    model : Classifier
        A fitted classifier of tanlearn or of ``tanlearn.baselines``.
    path : str or path
        Where, with any extension; what is there is replaced.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted, or to codes only and not to a table.
    TypeError
        If it is no classifier of this library.
    ValueError
        If a parameter cannot be written (a random generator, a callback, an object of the user's own), or a category
        is neither string nor number. Nothing is written then.
    OSError
        If the file cannot be written. What stood there before is unchanged.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.files.models import load, save
    >>> model = NaiveBayesClassifier().fit([["sun"], ["rain"]], ["beach", "home"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/outing.tan")
    ...     load(f"{folder}/outing.tan").predict([["rain"]]).tolist()
    ['home']
    """
    model = model.to_local() if hasattr(model, "to_local") else model
    if not is_registered(model) or not hasattr(model, "_get_state"):
        raise TypeError(
            f"model must be a fitted classifier of tanlearn, got {type(model).__name__}. Of a search save "
            f"best_estimator_, of a pipeline its last step; what is of a class of your own, pickle."
        )
    check_is_fitted(model)
    try:
        content = pack(*_describe(model))
        _restore(*unpack(content))  # by the rules of load, so that what is written can be read
    except RecursionError as error:
        raise ValueError("the model cannot be saved: a parameter contains itself, or is nested too deeply.") from error
    except ExplainedError:
        raise
    except ValueError as error:
        raise ValueError(f"the model cannot be saved: {error} Correct it with set_params, or fit again.") from error
    write_file(path, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier that :func:`save` wrote.

    Nothing in the file is executed, and classes are found by name among those of this library only. Import
    ``tanlearn.baselines`` before loading what uses it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Classifier
        A fitted classifier of the class that was saved.

    Raises
    ------
    ValueError
        If the file is none of this library, damaged, altered or of a newer version.
    OSError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn import TANClassifier
    >>> from tanlearn.files.models import load, save
    >>> model = TANClassifier(n_epochs=1, batch_size=2, random_state=0).fit([[0, 1], [1, 1], [0, 0]], [1, 0, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.tan")
    ...     load(f"{folder}/model.tan")
    TANClassifier(batch_size=2, n_epochs=1, random_state=0)
    """
    return read_archive(path, _restore)


def _describe(model: Any) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return a fitted classifier as JSON and arrays."""
    writer, encoder = Writer(), model.encoder_
    names = getattr(model, "feature_names_in_", None)
    discretizer = encoder.discretizer_
    columns = [
        {name: writer.encode(found, "encoder_", f"{name}_") for name, found in column.items()}
        for column in encoder_columns(encoder)
    ]
    description = {
        "class": type(model).__name__,
        "parameters": writer.parameters(model, "model"),
        "classes": writer.encode(model.classes_, "model", "classes_"),
        "feature_names": None if names is None else names.tolist(),
        "encoder": {
            "parameters": writer.parameters(encoder, "model.encoder_"),
            "discretizer": None if discretizer is None else writer.parameters(discretizer, "encoder_.discretizer_"),
            **({"discretizer_class": _QUANTILES} if type(discretizer) is QuantileDiscretizer else {}),
            "columns": columns,
        },
        "state": {k: writer.encode(v, "model", k) for k, v in model._get_state().items()},
    }
    return description, writer.arrays


def _restore(description: Any, arrays: dict[str, AnyArray]) -> Any:
    """Return the classifier that :func:`_describe` described."""
    reader = Reader(arrays)
    name, parameters, classes, names, encoder, state = fields(
        description, "class", "parameters", "classes", "feature_names", "encoder", "state"
    )
    model = reader.restore(name, parameters)
    if not hasattr(model, "_set_state") or type(state) is not dict:
        raise ValueError(f"{name} is no classifier, or its state no object.")
    model.encoder_ = _restore_encoder(reader, encoder)
    model.classes_ = _check_classes(reader.decode(classes))
    n_features = len(model.encoder_.is_discrete_)
    if names is not None:
        if type(names) is not list or set(map(type, names)) != {str} or not len(names) == len({*names}) == n_features:
            raise ValueError(f"feature_names must be a list of {n_features} different strings.")
        model.feature_names_in_ = np.array(names, dtype=object)
        model.encoder_.feature_names_in_ = model.feature_names_in_.copy()
    model.n_features_in_ = n_features
    model._set_state({key: reader.decode(value) for key, value in state.items()})
    reader.finish()
    return model


def _restore_encoder(reader: Reader, description: Any) -> TableEncoder:
    """Return the fitted encoder."""
    kind = description.pop("discretizer_class", "MDLPDiscretizer") if type(description) is dict else None
    parameters, discretizer, columns = fields(description, "parameters", "discretizer", "columns")
    encoder: TableEncoder = reader.restore("TableEncoder", parameters)
    if kind not in ("MDLPDiscretizer", _QUANTILES):
        raise ValueError(f"discretizer_class is {kind!r}, but may be {_QUANTILES!r} only.")
    unfitted = None if discretizer is None else reader.restore(kind, discretizer)
    if type(columns) is not list or not columns:
        raise ValueError("columns must be a list of at least one.")
    known = [{name: reader.decode(value) for name, value in column.items()} for column in columns]
    if (unfitted is None) is not all(column.keys() == {"categories"} for column in known):
        raise ValueError("there must be a discretizer where columns have cuts, and nowhere else.")
    return restore_encoder(encoder, unfitted, known)


def encoder_columns(encoder: TableEncoder) -> list[dict[str, AnyArray]]:
    """Return what an encoder has learnt of every column.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.

    Returns
    -------
    list of dict
        Of every column ``categories``, or ``cut_points`` and ``typical_values``.

    Raises
    ------
    ExplainedError
        If it encodes with something else than tanlearn's, or a category is neither string nor number.

    Examples
    --------
    >>> from tanlearn import TableEncoder
    >>> from tanlearn.files.models import encoder_columns
    >>> encoder_columns(TableEncoder().fit([[0.1], [9.0], [9.0], [0.3]], [0, 1, 1, 0]))
    [{'cut_points': array([4.65]), 'typical_values': array([0.2, 9. ])}]
    """
    discretizer = encoder.discretizer_
    for part, known in ((encoder, [TableEncoder]), (discretizer, CUT_DISCRETIZERS)):
        if part is not None and type(part) not in known:
            raise ExplainedError(
                f"encoder_ encodes with {type(part).__name__}, but a file holds {known[0].__name__} only. Fit with "
                f"that, or pickle the model."
            )
    columns, cuts = [], iter([] if discretizer is None else discretizer.cut_points_)
    for i, (categories, typical) in enumerate(zip(encoder.categories_, encoder.typical_values_, strict=True)):
        if categories is None:
            columns.append({"cut_points": next(cuts), "typical_values": typical})
        else:
            columns.append({"categories": _check_categories(i, categories)})
    return columns


def restore_encoder(
    encoder: TableEncoder, discretizer: CutDiscretizer | None, columns: list[dict[str, Any]]
) -> TableEncoder:
    """Fit an encoder to columns of which everything is known.

    Parameters
    ----------
    encoder : TableEncoder
        Not fitted, with its parameters.
    discretizer : MDLPDiscretizer, QuantileDiscretizer or None
        Not fitted; ``None`` if no column has cuts.
    columns : list of dict
        As :func:`encoder_columns` returns them; at least one.

    Returns
    -------
    TableEncoder
        The encoder itself.

    Raises
    ------
    ValueError
        If something breaks a rule of the format.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import TableEncoder
    >>> from tanlearn.files.models import restore_encoder
    >>> restore_encoder(TableEncoder(), None, [{"categories": np.array([3, 7])}]).encode([[7], [3]])
    array([[1, 0]], dtype=uint8)
    """
    categories: list[AnyArray | None] = []
    typical_values: list[AnyArray | None] = []
    cut_points = []
    for i, column in enumerate(columns):
        if column.keys() == {"categories"}:
            categories.append(_check_categories(i, column["categories"]))
            typical_values.append(None)
        else:
            categories.append(None)
            cuts, typical = fields(column, "cut_points", "typical_values")
            cut_points.append(_check_cuts(i, cuts))
            typical_values.append(_check_typical(i, typical, len(cut_points[-1]) + 1))
    if discretizer is not None:
        discretizer.restore(cut_points)
    return encoder.restore(categories, typical_values, discretizer)


def _check_categories(column: int, categories: Any) -> AnyArray:
    """Return the categories of a column if they are strings or numbers, and differ."""
    if not isinstance(categories, np.ndarray) or categories.ndim != 1 or categories.dtype.kind not in "biufO":
        raise ValueError(f"the categories of column {column} must be an array of numbers, or of objects.")
    values = categories.tolist()
    strange = [v for v in values if type(v) not in (bool, int, float, str, bytes) and not isinstance(v, np.generic)]
    if strange:
        raise ExplainedError(
            f"column {column} of the table has the category {strange[0]!r}, but a file holds strings and numbers only. "
            f"Cast the categories to str, and fit again."
        )
    if len(set(values)) < len(values) or any(v != v for v in values) or len(values) > LARGEST_N_STATES:
        raise ValueError(f"the categories of column {column} must differ, and be {LARGEST_N_STATES} at most.")
    return categories


def _check_cuts(column: int, cuts: Any) -> AnyArray:
    """Return the cut points of a column if they are finite and increase."""
    if not isinstance(cuts, np.ndarray) or cuts.dtype != np.float64 or cuts.ndim != 1 or len(cuts) >= LARGEST_N_STATES:
        raise ValueError(f"the cuts of column {column} must be float64, and {LARGEST_N_STATES - 1} at most.")
    if not np.isfinite(cuts).all() or not (cuts[:-1] < cuts[1:]).all():
        raise ValueError(f"the cuts of column {column} must be finite, and increase.")
    return cuts


def _check_typical(column: int, values: Any, n_states: int) -> AnyArray:
    """Return what stands for the intervals of a column if it is finite or nan."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != (n_states,):
        raise ValueError(f"the typical values of column {column} must be {n_states} numbers of float64.")
    if np.isinf(values).any():
        raise ValueError(f"the typical values of column {column} must be finite or nan.")
    return values


def _check_classes(classes: Any) -> AnyArray:
    """Return the classes if they are sorted, and differ."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ValueError("classes must be an array of at least two.")
    if not all(low < high for low, high in zip(classes[:-1].tolist(), classes[1:].tolist(), strict=True)):
        raise ValueError("classes must be sorted, and differ.")
    return classes

"""Fitted classifiers in files: without pickle, whole or not at all, and read by whoever knows the format.

What a file keeps, and so what a loaded classifier has: the class of the classifier, its parameters (those of nested
learners, losses and encoders too), ``classes_``, ``encoder_``, ``n_features_in_``, ``feature_names_in_``, and what
predicts: ``structure_``, ``tables_`` and ``calibration_``, ``structure_probabilities_`` and ``loss_`` of
:class:`~tanlearn.TANClassifier`, ``forest_`` of :class:`~tanlearn.BayesForestClassifier`, or ``ensemble_`` of AODE.
Predictions are the same to the last bit.

What it does not keep: what learners found on the way (``parameters_``, ``structure_learner_``, ``candidates_``,
``history_``, ``n_iter_``); the path of a checkpoint; random generators, callbacks, and objects of classes that are not
tanlearn's own, which :func:`save` refuses. Counts (``counts_`` after ``partial_fit``, ``fit_batches`` and
``from_counts``) are kept with ``counts=True``. Then a loaded classifier goes on with ``partial_fit`` to the model that
it would have become. They can take many times as much space as the model.

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
    ``max(1, number of categories)`` or ``1 + number of cuts`` states, at most 65,535. ``value_ranges``, left out if
    unknown, is a list with an item per column: the smallest and the largest training value of a continuous column, or
    null;
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

  - ``notation``, left out if it is unknown or the usual one: how the text table of ``tanlearn fit`` was written. An
    object with ``decimal``, ``thousands`` and ``dates``, strings, and ``symbols`` and ``missing``, lists of strings:
    the options of the command line by these names;
  - ``counts``, left out if the file keeps none: an object with ``kind`` and ``counts``, as in a file of
    :class:`~tanlearn.TableCounts`.

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

from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn.data.notation import Notation
from tanlearn.files.archive import ExplainedError, fields, pack, read_archive, unpack
from tanlearn.files.encoders import describe_table, restore_table
from tanlearn.files.regular_files import write_file
from tanlearn.files.values import Reader, Writer, is_registered

__all__ = ["load", "save"]


def save(model: Any, path: str | os.PathLike[str], *, counts: bool = False) -> None:
    """Write a fitted classifier to a file: whole, or not at all.

    Parameters
    ----------
    model : Classifier
        A fitted classifier of tanlearn or of ``tanlearn.baselines``.
    path : str or path
        A regular file with any extension. If it is there, it is replaced and keeps its permissions.
    counts : bool, default=False
        Whether to keep ``counts_``, from which a loaded classifier goes on with ``partial_fit``.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted, or to codes only and not to a table.
    TypeError
        If it is no classifier of this library, or a file cannot hold counts of its kind.
    ValueError
        If ``counts`` is true and the classifier has none; if a parameter cannot be written (a random generator, a
        callback, an object of the user's own), or a category is neither string nor number. Nothing is written then.
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
        content = pack(*_describe(model, counts))
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


def _describe(model: Any, counts: bool) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return a fitted classifier as JSON and arrays."""
    writer = Writer()
    names = getattr(model, "feature_names_in_", None)
    table = describe_table(writer, model.encoder_, model.classes_, names, "model")
    description = {
        "class": type(model).__name__,
        "parameters": writer.parameters(model, "model"),
        **table,
        "state": {k: writer.encode(v, "model", k) for k, v in model._get_state().items()},
    }
    if (notation := getattr(model, "_notation", None)) is not None:
        description["notation"] = notation.to_state()
    if counts:
        kind, state = model._get_counts()
        description["counts"] = {
            "kind": kind,
            "counts": {k: writer.encode(v, "model.counts_", k) for k, v in state.items()},
        }
    return description, writer.arrays


def _restore(description: Any, arrays: dict[str, AnyArray]) -> Any:
    """Return the classifier that :func:`_describe` described."""
    reader = Reader(arrays)
    counts, notation = (
        description.pop(key, None) if type(description) is dict else None for key in ("counts", "notation")
    )
    name, parameters, classes, names, encoder, state = fields(
        description, "class", "parameters", "classes", "feature_names", "encoder", "state"
    )
    model = reader.restore(name, parameters)
    if not hasattr(model, "_set_state") or type(state) is not dict:
        raise ValueError(f"{name} is no classifier, or its state no object.")
    model.encoder_, model.classes_ = restore_table(reader, classes, names, encoder)
    model.n_features_in_ = model.encoder_.n_features_in_
    if names is not None:
        model.feature_names_in_ = model.encoder_.feature_names_in_.copy()
    model._set_state({key: reader.decode(value) for key, value in state.items()})
    model._was_loaded = True
    if notation is not None:
        model._notation = Notation.from_state(notation)
    if counts is not None:
        kind, amounts = fields(counts, "kind", "counts")
        if type(amounts) is not dict:
            raise ValueError("counts must be an object.")
        model._set_counts(kind, {key: reader.decode(value) for key, value in amounts.items()})
    reader.finish()
    return model

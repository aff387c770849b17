"""Files of fitted classifiers, densities and imputers in a documented format without pickle, written atomically.

A file stores the class of the model, its parameters (including nested learners, losses and encoders), ``classes_``,
``encoder_``, ``n_features_in_``, ``feature_names_in_``, and the fitted attributes that are needed for predictions:
``structure_``, ``tables_`` and ``calibration_``; ``structure_probabilities_`` and ``loss_`` of
:class:`~tanlearn.TANClassifier`; ``forest_`` of :class:`~tanlearn.BayesForestClassifier`; ``forest_``, ``network_``,
``boosting_`` and ``weights_`` of :class:`~tanlearn.BayesEnsembleClassifier`; ``ensemble_`` of AODE;
``interval_numbers_`` and ``offset_`` of :class:`~tanlearn.TANDensity` and :class:`~tanlearn.TANImputer`, which have no
``classes_``. Predictions of a loaded classifier equal the predictions of the saved classifier, bit for bit.

A file does not store intermediate results of learning (``parameters_``, ``structure_learner_``, ``candidates_``,
``history_``, ``n_iter_``) or the path of a checkpoint. :func:`save` rejects random generators, callbacks, and objects
of classes outside tanlearn. Counts (``counts_`` after ``partial_fit``, ``fit_batches`` and ``from_counts``) are stored
with ``counts=True``. Training of a loaded classifier can then be continued with ``partial_fit``, with the same result
as without saving. Counts can be many times as large as the model.

*Format 1.* A file is a zip archive without compression, encryption or folders. Its comment consists of 64 hexadecimal
digits, the SHA-256 of all bytes of the file before the comment. The first entry is ``tanlearn.json``. The other entries
are ``0.npy``, ``1.npy`` and so on, in this order. This paragraph also applies to later formats.

``tanlearn.json`` is ASCII text with one JSON object, which has the keys

- ``format``: ``"tanlearn model"``;
- ``version``: 1, an integer;
- ``tanlearn``: the version of the library that wrote the file;
- ``members``: a list with one object for each other entry, in order, with ``name`` and ``sha256``, the digest of its
  bytes;
- ``model``: an object with the keys

  - ``class``: the name of the class of the classifier in ``tanlearn`` or ``tanlearn.baselines``;
  - ``parameters``: the parameters of its constructor, an object of values. Omitted parameters have their default
    values. Versions up to 0.2 also wrote the parameters of ``training`` and ``candidates`` of gradient classifiers
    here;
  - ``classes``: the two or more classes in sorted order, as an array or objects (see below), or null for ``TANDensity``
    and ``TANImputer``;
  - ``feature_names``: a list of strings, one per column, or null;
  - ``encoder``: an object with the following keys. ``parameters``: the parameters of ``TableEncoder``. ``discretizer``:
    the parameters of the fitted ``MDLPDiscretizer``, or null if no column has cut points. ``discretizer_class``:
    ``"QuantileDiscretizer"`` if the discretizer is of this class, omitted otherwise. ``columns``: an object per column.
    A categorical column has ``categories``, an array of numbers or objects. The code of a value that equals the k-th
    category, counted from 0, is k. Any other value is missing, or raises an error, depending on the parameter
    ``handle_unknown``. A continuous column has ``cut_points``, an array of increasing float64 numbers. The code of a
    number is the number of cut points below it. The column also has ``typical_values``, which contains for each code a
    float64 that represents the interval when rows are sampled or completed, or nan. A column thus has ``max(1, number
    of categories)`` or ``1 + number of cut points`` states. If ``has_missing_category`` is true, there is one more
    state, the last one, for missing values. At most 65,535 states are possible. ``value_ranges``, which is omitted if
    it is unknown, is a list with one item per column: the smallest and the largest training value of a continuous
    column, or null;
  - ``state``: an object of values, written by ``to_state`` of the model (:mod:`tanlearn.models.bayes_net`,
    :mod:`tanlearn.forest.serialization`).

    - Models with CPTs have ``structure`` and ``cells``, a float64 array of log probabilities. It begins with the log
      probabilities of the classes. They are followed by the log probabilities of each feature given its parents and the
      class, as an array [state][state of 1st parent][state of 2nd parent][class] whose last index is the fastest.
      Indices of absent parents are omitted.
    - CPTs that back off to fewer parents are stored as counts: ``cells`` contains only the log probabilities of the
      classes, and ``back_off`` is a dict of arrays. ``n_entries``, int64, contains for each feature the number of
      combinations of parents, state and class that occur in the rows. ``values``, uint16, contains these combinations,
      feature by feature and sorted. In a combination, the number of states of a parent means that this parent and all
      parents after it are missing. ``counts`` contains the counts of the combinations (int64 or float64).
      ``class_counts`` contains the counts of the classes, and ``concentrations`` contains the m of each level, starting
      with no parent. ``level_counts`` is None, or contains float64 counts for the entries of all levels, feature by
      feature, which are used instead of the sums of ``counts`` over longer contexts.
    - CPTs that are sums of terms have only the ``cells`` of the classes, and ``terms``, a dict of arrays. ``features``,
      int64 (n_columns, k), contains the features of each column, or -1 for none: a feature alone, or a feature and one
      or two of its parents. ``groups``, int64, contains the group of each state, for each feature of each column.
      ``cells``, float64, contains an array [group of the feature][group of each parent]...[class] for each column,
      concatenated. The logarithm of a CPT entry is the sum over the columns. ``prior_shift``, float64 (n_classes,),
      which is omitted if it is 0, is the part of the ``cells`` of the classes that remains if other class probabilities
      are set.
    - CPTs that are rounded to few bits have ``bits``, a tuple of the numbers of integer and fraction bits. Their
      ``cells`` are uint8 and contain the magnitudes of the log probabilities, packed into bytes so that the highest bit
      of the first magnitude comes first.
    - ``normalized``, which is omitted if it is true, states whether the probabilities of float64 cells sum to one.
    - ``calibration`` is a dict of ``temperature``, ``power`` and ``pivot``, the parameters of the
      :class:`~tanlearn.Calibration` that converts log joints to class probabilities. If only the evidence of the
      features is divided by the temperature, the dict also has ``prior_shift``, a tuple with one number per class that
      is added to the log joint.
    - ``prior_offset``, float64 (n_classes,), which is omitted if the class prior was counted, is the difference between
      the calibrated class prior and the log frequencies of the classes in training.
    - ``TANClassifier`` also has ``structure_probabilities``, which contains for each feature a dict from parents (-1
      for none) to probabilities, and ``loss``, the training loss as an object.
    - ``TermNetClassifier`` also has ``standard_errors``, float64 (the sum of the encoder's states, n_classes), with one
      number for each state of each feature and each class.
    - ``AODEClassifier`` has other keys instead. The states of all features are numbered consecutively, and the state of
      a constant feature comes last (V states in total). ``is_parent``, bool of shape (V,), marks the states that may be
      super-parents. ``log_parent``, float32 of shape (V * n_classes,), is the log joint of state and class.
      ``log_child``, float32 of shape (V * V * n_classes,), indexed [parent][child][class], is the log probability of
      the child given parent and class.
    - ``WeightedNaiveBayesClassifier`` has ``cells``, which are stored like CPTs without parents, and ``weights``,
      float64, the factor for the log probabilities of each feature.
    - ``MultinetClassifier`` has ``log_prior``, float64 (n_classes,); ``parents``, int64 (n_classes, d, k), with -1 for
      none; and ``cells``, float64, which contains for each class the log probabilities of each feature as an array
      [state][state of 1st parent]... .
    - ``BayesForestClassifier`` has arrays for E networks, d features and L levels, one more than the largest number of
      parents. ``n_states``, int64 (E, d), is the number of values of a feature that a network distinguishes.
      ``merged``, uint16 (E, the sum over features of the encoder's states plus one), contains, feature by feature, the
      network's code for each code of the encoder and then for a missing value. A network's code that is not less than
      its number of values represents a missing value. ``parents``, int64 (E, d, L - 1), contains -1 for none.
      ``weights`` is float64 (E, d, L); ``log_prior``, ``log_frequency`` and ``shift`` are float64 (n_classes,);
      ``doubt`` is a number, and ``is_average`` is a bool; ``importances`` is float64 (d,) or null. ``is_monotone``,
      which files of earlier versions do not contain, states whether the forest was fitted with monotone columns. The
      other arrays are concatenated over networks. Each row of ``sizes``, int64 (E, 10), contains their lengths for one
      network, in this order: ``root``, ``children``, ``branch``, ``class_start``, ``classes``, ``value_start``,
      ``values``, ``cell_start``, ``gain``, ``unseen``. ``branch``, ``classes`` and ``values`` are uint16, ``gain`` and
      ``unseen`` are float32, and the others are int64. ``root[f]`` is the context of family f without parents. The
      contexts ``children[g]`` to ``children[g + 1]`` split context g by the parent's values ``branch``. Context g
      contains rows of the ``classes`` from ``class_start[g]`` on and of the ``values`` from ``value_start[g]`` on, both
      in increasing order. It adds a number to the score of a class: for these values, an entry of ``gain`` from
      ``cell_start[g]`` on, indexed [value][class], and for other values, an entry of ``unseen`` at the position of the
      class. The number is multiplied by the weight for network, feature and level. Starting from the root, a row
      follows the values of its parents as far as there are contexts. Below a context without the child's value,
      ``unseen`` is used. ``log_prior`` is added to these sums. p is the softmax of the sums or, if ``is_average`` is
      true, the mean of the softmax of each network with the prior. The score is log((1 - doubt) p + doubt /
      n_classes) + ``shift``. If another class prior is set later, it is compared with ``log_frequency``.
    - ``BoostedTermsClassifier`` has arrays for T terms of at most S splits. ``features``, int64 (T, S), contains -1 for
      none. ``sides``, uint8, contains for each split, in order, the side (0 or 1) of each state of its feature. The
      cell of a row in a term is the number whose bit s is the side of the row's state in split s. ``values``, float64
      (T, 2^S, n_classes), are added to the scores of the classes. ``weights``, float64 (T, 2^S), are the sums of the
      variances p (1 - p) of the classes over the training rows in each cell. If values are missing, the weighted mean
      of ``values`` over all cells that agree with the observed values is added, or 0 if the weights of these cells are
      0. ``log_prior``, float64 (n_classes,), is also added; ``log_frequency`` is the log frequency of the classes in
      training.
    - ``BayesEnsembleClassifier`` has the arrays of its parts, with the prefixes ``forest_``, ``network_`` and
      ``boosting_``. ``merged``, uint16 (the sum over features of the encoder's states plus one), contains, feature by
      feature, the network's code for each code of the encoder and then for a missing value. ``weights``, float64 (3,),
      are the weights of forest, network and boosted terms; files of earlier versions may have two weights and no
      boosted terms. The score of a class is the weighted sum of the log probabilities of the three parts, plus
      ``shift``, float64 (n_classes,). ``typical_values``, float64, represent the merged intervals of all continuous
      columns; ``standard_errors`` and ``prior_offset``, float64, belong to the network.
    - ``TANDensity`` and ``TANImputer`` have CPTs whose class is latent, and ``n_components``, the number of latent
      classes. ``numbers``, float64, contains training values from each interval of the continuous columns, interval by
      interval and sorted. ``n_numbers``, int64, contains the number of these values for each interval, which may be 0.
      ``TANDensity`` also has ``offset``, a float, and ``expected``, float64 (d,), the mean contribution of each column
      in training.

  - ``notation``, which is omitted if it is unknown or the default: the notation of the text file that ``tanlearn fit``
    read. It is an object with the strings ``decimal``, ``thousands`` and ``dates``, and the lists of strings
    ``symbols`` and ``missing``, which correspond to the options of the command line with the same names;
  - ``metadata``, which is omitted if ``save`` was called without metadata: a dict (see below) of ``saved``, the UTC
    date as a string; ``rows``, the number of training rows with a class and a positive weight, or null if it is
    unknown; ``columns``, the number of columns; ``versions``, a dict of the versions of Python and of packages; and
    ``user``, a dict of values;
  - ``counts``, which is omitted if no counts are stored: an object with ``kind`` and ``counts``, as in a file of
    :class:`~tanlearn.TableCounts` (see :mod:`tanlearn.files.counts`).

A *value* is null, true, false, a string, an integer (of any size), a float (always with a point or an exponent, and
with as many digits as needed to distinguish it from all others), a list of values, or an object, whose ``kind``
determines its meaning and its other keys:

=============== ================================================ ====================================================
kind            other keys                                       meaning
=============== ================================================ ====================================================
``float``       ``value``: ``"inf"``, ``"-inf"`` or ``"nan"``    a float that JSON cannot represent
``bytes``       ``hex``                                          bytes in hexadecimal digits
``tuple``       ``items``: values                                a tuple
``dict``        ``items``: lists of two values                   a dictionary with distinct keys
``scalar``      ``type``, ``value``                              a NumPy scalar: bool, int8 ... uint64, float16 ...
                                                                 float64, str or bytes
``objects``     ``items``: values                                a one-dimensional array of objects
``array``       ``member``                                       an array of numbers or strings
``structure``   ``parents``: an entry, ``cyclic``: bool          int64 of shape (n_features, k), -1 for none, last;
                                                                 whether a cycle is allowed and present
``candidates``  ``parents`` and ``group``: entries,              see :class:`~tanlearn.CandidateSets`; int64
                ``arborescence``, ``allow_cycles``
``object``      ``class``, ``parameters``                        an unfitted learner, loss or encoder
=============== ================================================ ====================================================

Each entry is referenced exactly once. Array entries have NumPy's .npy format, version 1.0, in C order and
little-endian, with type bool, integer, float16 to float64, ``U`` or ``S``. The keys of the header are in alphabetical
order, as NumPy writes them.
"""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn.encoding.stored_values import fields
from tanlearn.files.archive import ExplainedError, pack, read_archive, unpack
from tanlearn.files.counts import describe_counts, restore_counts
from tanlearn.files.encoders import describe_table, restore_table
from tanlearn.files.metadata import check_metadata, new_metadata
from tanlearn.files.regular_files import write_file
from tanlearn.files.values import Reader, Writer, is_registered
from tanlearn.sources.notation import Notation

__all__ = ["load", "save"]


def save(
    model: Any, path: str | os.PathLike[str], *, counts: bool = False, metadata: dict[str, Any] | None = None
) -> None:
    """Write a fitted classifier, density or imputer to a file, atomically.

    Parameters
    ----------
    model : Classifier, TANDensity or TANImputer
        A fitted classifier of ``tanlearn`` or ``tanlearn.baselines``, or a fitted :class:`~tanlearn.TANDensity` or
        :class:`~tanlearn.TANImputer`.
    path : str or path
        Path of a regular file with any extension. An existing file is replaced, and its permissions are kept.
    counts : bool, default=False
        Whether to store ``counts_``, so that training can be continued with ``partial_fit`` after loading.
    metadata : dict, optional
        Dictionary of your own values (strings, numbers, booleans, None, lists and dicts), such as the author or the
        origin of the data. ``load`` returns it as ``metadata_["user"]``. The date of saving, the numbers of training
        rows and columns, and the versions of Python and packages are added to the metadata. By default, a file has no
        metadata, so that files of equal models are equal, and a loaded classifier keeps the metadata of its file.

    Raises
    ------
    NotFittedError
        If the model is not fitted, or was fitted to codes instead of raw values.
    TypeError
        If ``model`` is not a model of this library, if its counts cannot be stored, or if ``metadata`` is not a dict
        with strings as keys.
    ValueError
        If ``counts`` is True but the classifier has no counts, if a parameter cannot be stored (a random generator, a
        callback, an object of your own class), or if a category is not a string, a number or a boolean. In this case,
        no file is written.
    OSError
        If the file cannot be written. An existing file is then unchanged.

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
            f"model must be a fitted classifier, TANDensity or TANImputer of tanlearn, got {type(model).__name__}. "
            f"Save best_estimator_ of a search, or the last step of a pipeline; pickle objects of your own classes."
        )
    check_is_fitted(model)
    found = getattr(model, "metadata_", None) if metadata is None else new_metadata(model, metadata)
    try:
        content = pack(*_describe(model, counts, found))
        _restore(*unpack(content))  # validated as in load, so that each written file can be read
    except RecursionError as error:
        raise ValueError(
            "the model cannot be saved, because a parameter contains itself or is nested too deeply. "
            "Replace it with set_params."
        ) from error
    except ExplainedError:
        raise
    except ValueError as error:
        raise ValueError(
            f"the model cannot be saved: {error} Correct this parameter with set_params, or fit the model again."
        ) from error
    write_file(path, content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file written by :func:`save`.

    The file cannot execute code. Only classes of this library are looked up by name.

    Parameters
    ----------
    path : str or path
        Path of the file.

    Returns
    -------
    Classifier, TANDensity or TANImputer
        A fitted model of the class that was saved.

    Raises
    ------
    ValueError
        If the file is not a tanlearn model, is damaged or altered, or was written by a newer version.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.files.models import load, save
    >>> model = NaiveBayesClassifier(class_prior=[0.5, 0.5]).fit([[0, 1], [1, 1], [0, 0]], [1, 0, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.tan")
    ...     load(f"{folder}/model.tan")
    NaiveBayesClassifier(class_prior=[0.5, 0.5])
    """
    return read_archive(path, _restore)


def _describe(model: Any, counts: bool, metadata: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return a fitted model as JSON and arrays."""
    writer = Writer()
    names = getattr(model, "feature_names_in_", None)
    table = describe_table(writer, model.encoder_, getattr(model, "classes_", None), names, "model")
    description = {
        "class": type(model).__name__,
        "parameters": writer.parameters(model, "model"),
        **table,
        "state": {k: writer.encode(v, "model", k) for k, v in model._get_state().items()},
    }
    if (notation := getattr(model, "_notation", None)) is not None:
        description["notation"] = notation.to_state()
    if metadata is not None:
        description["metadata"] = writer.encode(metadata, "metadata", "metadata", "Convert it to one of these.")
    if counts and not hasattr(model, "_get_counts"):
        raise ValueError(f"counts=True needs counts_, which {type(model).__name__} does not have. Leave counts out.")
    if counts:
        description["counts"] = describe_counts(writer, model._get_counts(), "model.counts_")
    return description, writer.arrays


def _restore(description: Any, arrays: dict[str, AnyArray]) -> Any:
    """Return the model that :func:`_describe` has described."""
    reader = Reader(arrays)
    counts, notation, metadata = (
        description.pop(key, None) if type(description) is dict else None for key in ("counts", "notation", "metadata")
    )
    name, parameters, classes, names, encoder, state = fields(
        description, "class", "parameters", "classes", "feature_names", "encoder", "state"
    )
    model = reader.restore(name, parameters)
    if not hasattr(model, "_set_state") or type(state) is not dict:
        raise ValueError(f"{name} must be a classifier, and its state an object.")
    has_classes = getattr(model, "_has_classes", True)
    model.encoder_, labels = restore_table(reader, classes, names, encoder, has_classes=has_classes)
    if has_classes:
        model.classes_ = labels
    model.n_features_in_ = model.encoder_.n_features_in_
    if names is not None:
        model.feature_names_in_ = model.encoder_.feature_names_in_.copy()
    model._set_state({key: reader.decode(value) for key, value in state.items()})
    model._was_loaded = True
    if notation is not None:
        model._notation = Notation.from_state(notation)
    if metadata is not None:
        model.metadata_ = check_metadata(reader.decode(metadata))
        if model.metadata_["rows"] is not None:
            model._n_rows = model.metadata_["rows"]
    if counts is not None:
        noise = counts.pop("noise", None) if type(counts) is dict else None
        kind, amounts = fields(counts, "kind", "counts")
        model.counts_ = restore_counts(reader, kind, amounts, model.encoder_.n_states_, len(model.classes_), noise)
    reader.finish()
    return model

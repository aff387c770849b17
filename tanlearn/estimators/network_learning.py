"""Learning of a network from rows, batches or counts, with a structure learner and a parameter learner.

The structure is fixed (``classifier.structure``), naive Bayes (None), or learned. The attribute ``needs`` of a learner
states the data that it needs:

- ``"pairs"``: counts of pairs of features, ``from_counts(pairs, rng)`` of structure learners;
- ``"families"``: counts of each feature with its parents, ``from_counts(layout, cells)`` of parameter learners;
- ``"contexts"``: the contexts of parent values that occur, ``from_contexts(contexts, rows)``;
- ``"gradients"``: sums of losses and gradients over rows, ``from_objective(structure, layout, cells, rows)``;
- ``"rows"``, the default for learners without the attribute: all rows at once, ``learn(data, rng)`` and
  ``fit(structure, data, rng)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import InvalidParameterError

from tanlearn._typing import AnyArray
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.counts_base import Counts
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.estimators.class_prior import keep_offset
from tanlearn.estimators.counting_classifier import FROM_COUNTS
from tanlearn.estimators.estimator_input import generator
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import Calibration
from tanlearn.parameters.learned_structure import LearnedStructure, copy_generator
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.parameter_learner import check_learner_device, counts_classes, needs_of, validate_settings
from tanlearn.structures.structures import Structure, check_structure
from tanlearn.structures.table_layout import TableLayout

if TYPE_CHECKING:
    from tanlearn.estimators.row_sources import EncodedSource

__all__ = [
    "check_needs",
    "convert_counts",
    "count_pairs_in_trees",
    "histories",
    "learn_batches",
    "learn_counts",
    "learn_rows",
    "needs_from_counts",
    "new_counts",
    "refuse_class",
    "validate_params",
]

#: Suggestions shown when a string or a class is passed instead of an instance.
_LEARNERS = {
    "structure": "tanlearn.baselines, such as ChowLiu()",
    "parameters": "tanlearn, such as MaximumLikelihood()",
}


def validate_params(classifier: Any) -> None:
    """Validate the parameters. If a learner is a string or a class, the error suggests an instance."""
    for name, learners in _LEARNERS.items():
        given = getattr(classifier, name)
        if isinstance(given, str):
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(classifier).__name__} must be an object, not a string. Got "
                f"{given!r} instead. Pass a learner of {learners}."
            )
        refuse_class(classifier, name)
    BaseEstimator._validate_params(classifier)


def refuse_class(classifier: Any, name: str) -> None:
    """Raise InvalidParameterError if a parameter is a class instead of a learner, and suggest an instance."""
    given = getattr(classifier, name)
    if isinstance(given, type):
        raise InvalidParameterError(
            f"The {name!r} parameter of {type(classifier).__name__} must be an object, got the class "
            f"{given.__name__}. Pass an instance instead: {given.__name__}(...)."
        )


def histories(classifier: Any) -> dict[str, list[Any]]:
    """Return the histories of the structure learner and the parameter learner, if they have any."""
    learners = {"structure": "structure_learner_", "parameters": "parameters_"}
    return {stage: getattr(getattr(classifier, name, None), "history_", []) for stage, name in learners.items()}


def check_needs(classifier: Any, allowed: frozenset[str]) -> bool:
    """Return True if both learners need only data in ``allowed``. Otherwise, raise an AttributeError."""
    structure, parameters = classifier.structure, classifier.parameters
    if parameters is not None and needs_of(parameters) not in allowed:
        raise AttributeError(f"{parameters!r} needs all rows at once. Use parameters=MaximumLikelihood().")
    if not _is_fixed(structure) and needs_of(structure) not in allowed:
        raise AttributeError(
            f"{structure!r} needs all rows at once. Use a Structure, or a learner that uses counts, such as "
            f"ChowLiu(). If your own learner has the method from_counts, set its attribute needs = 'pairs'."
        )
    return True


def needs_from_counts(classifier: Any) -> frozenset[str]:
    """Return the kinds of data that ``from_counts`` provides. Counts of contexts require a fixed structure."""
    return FROM_COUNTS | {"contexts"} if _is_fixed(classifier.structure) else FROM_COUNTS


def learn_rows(classifier: Any, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
    """Learn the structure and then the parameters from all rows. ``validation`` is ignored."""
    # Copies are fitted, because fitting sets attributes of learners, but the user's objects must not change.
    learner = _new_parameter_learner(classifier)
    check_learner_device(learner, classifier.device)
    if _is_fixed(classifier.structure):
        found = given = _fixed_structure(classifier, data.n_features)
    else:
        classifier.structure_learner_ = clone(classifier.structure, safe=False)
        check_learner_device(classifier.structure_learner_, classifier.device)
        start = copy_generator(rng)
        found = classifier.structure_learner_.learn(data, rng)
        check_structure(found, data.n_features)
        given = LearnedStructure(found, classifier.structure_learner_, start)
    tables = learner.fit(given, data, rng)
    classifier.calibration_ = getattr(learner, "calibration_", Calibration())
    classifier.model_ = BayesNet(found, tables)
    if not counts_classes(learner):
        keep_offset(classifier, data.class_totals())


def learn_batches(classifier: Any, rows: EncodedSource) -> None:
    """Learn the structure from counts of pairs, unless it is fixed, count its families, and fit the parameters."""
    learner = _new_parameter_learner(classifier)
    check_learner_device(learner, classifier.device)
    n_jobs, pairs, start = classifier.n_jobs, None, None
    if _is_fixed(classifier.structure):
        structure = _fixed_structure(classifier, len(rows.n_states))
    else:
        pairs = rows.add_to(PairCounts(rows.n_states, rows.n_classes), n_jobs=n_jobs)
        rng = generator(classifier.random_state)
        start = copy_generator(rng)
        structure = _structure_of_pairs(classifier, pairs, rng)
    if needs_of(learner) == "contexts":
        contexts = rows.add_to(ContextCounts(structure.parents, rows.n_states, rows.n_classes), n_jobs=n_jobs)
        classifier.model_ = BayesNet(structure, learner.from_contexts(contexts, lambda: rows.sample))
        return
    if pairs is not None and (structure.parents[:, 1:] < 0).all():
        counts: Any = pairs
        layout, cells = count_pairs_in_trees(pairs, structure)
    else:
        layout = TableLayout.of_parents(structure.parents, rows.n_states, rows.n_classes)
        counts = rows.add_to(FamilyCounts(layout), n_jobs=n_jobs)
        cells = counts.cells
    if needs_of(learner) == "gradients":
        learned = structure if start is None else LearnedStructure(structure, classifier.structure_learner_, start)
        tables = learner.from_objective(learned, layout, cells, rows)
        classifier.calibration_ = getattr(learner, "calibration_", Calibration())
        classifier.model_ = BayesNet(structure, tables)
        if not counts_classes(learner):
            keep_offset(classifier, counts.class_counts)
        return
    if counts is pairs or pairs is None:  # the structure cannot be learned again from other counts
        classifier.counts_ = counts
    classifier.model_ = BayesNet(structure, learner.from_counts(layout, cells))


def new_counts(classifier: Any, data: EncodedData) -> PairCounts | FamilyCounts:
    """Return empty counts of pairs for structure learners, and otherwise of the families of the structure."""
    if not _is_fixed(classifier.structure):
        return PairCounts.of_features(data)
    given = _fixed_structure(classifier, data.n_features)
    return FamilyCounts(TableLayout.of_parents(given.parents, data.n_states, data.n_classes))


def convert_counts(classifier: Any, counts: Any) -> Any:
    """Validate counts, and convert them to the type that the learners need.

    Structure learners need counts of pairs, smoothing over contexts needs counts of contexts, and other learners need
    the counts of their families.
    """
    if not _is_fixed(classifier.structure):
        classifier._check_type(counts, PairCounts)
        return counts
    kind = _type_of_counts(classifier)
    classifier._check_type(counts, *((PairCounts, kind) if kind is FamilyCounts else (kind,)))
    given = _fixed_structure(classifier, len(counts.n_states))
    if counts.has_pairs:
        layout, cells = count_pairs_in_trees(counts, given)
        own = FamilyCounts(layout)
        own.cells, own.noise = cells, counts.noise
        return own
    found = Structure(counts.parents)
    if found != given:
        raise ValueError(
            f"the counts are counts of the families of {found!r}, but structure is {given!r}. Pass the same "
            f"structure, or pass counts of pairs."
        )
    return counts


def learn_counts(classifier: Any, counts: Any) -> None:
    """Learn the structure from the counts, unless it is fixed, and fit the parameters."""
    learner = _new_parameter_learner(classifier)
    validate_settings(learner)
    if not _are_of(classifier, counts):
        raise ValueError(
            f"structure is {classifier.structure!r}, but earlier batches were counted for another structure. Start "
            f"with a new classifier: clone(model).partial_fit(...)."
        )
    if counts.has_pairs:  # only structure learners need pairs (see _type_of_counts)
        structure = _structure_of_pairs(classifier, counts, generator(classifier.random_state))
        tables = learner.from_counts(*count_pairs_in_trees(counts, structure))
    elif needs_of(learner) == "contexts":
        structure, tables = Structure(counts.parents), learner.from_contexts(counts, lambda: _no_rows(learner))
    else:
        structure, tables = Structure(counts.parents), learner.from_counts(counts.layout, counts.cells)
    classifier.model_ = BayesNet(structure, tables)


def count_pairs_in_trees(pairs: PairCounts, structure: Structure) -> tuple[TableLayout, AnyArray]:
    """Return the layout and the counts of the CPTs for a structure with at most one augmenting parent per feature.

    Shapes: counts in the result: (n_cells,).
    """
    if (structure.parents[:, 1] >= 0).any():
        raise ValueError(
            "a structure learned from counts of pairs must have at most one augmenting parent per feature, because "
            "CPTs of several parents need counts of three or more values. Learn a tree, as with ChowLiu() or "
            "KDependence(k=1), or pass a fixed structure."
        )
    layout = TableLayout.of_parents(structure.parents, pairs.n_states, pairs.n_classes)
    families = enumerate(structure.parents[:, 0].tolist())
    tables = [(pairs.feature(i) if j < 0 else pairs.pair(i, j)).ravel() for i, j in families]
    return layout, np.concatenate([pairs.class_counts, *tables])


def _is_fixed(structure: Any) -> bool:
    """Return whether the structure is not learned: it is given, or naive Bayes by default."""
    return structure is None or isinstance(structure, Structure)


def _given_structure(classifier: Any, n_features: int) -> Structure:
    """Return the given structure, or naive Bayes, without checking the number of features."""
    given: Structure | None = classifier.structure
    return Structure.naive_bayes(n_features) if given is None else given


def _fixed_structure(classifier: Any, n_features: int) -> Structure:
    """Return the given structure, or naive Bayes. Raise ValueError if its number of features is wrong."""
    given = _given_structure(classifier, n_features)
    check_structure(given, n_features)
    return given


def _are_of(classifier: Any, counts: Any) -> bool:
    """Return whether counts have the type and the structure that the learners need."""
    kind: Any = _type_of_counts(classifier)
    if type(counts) is not kind:
        return False
    return counts.has_pairs or Structure(counts.parents) == _given_structure(classifier, counts.n_features)


def _type_of_counts(classifier: Any) -> type[Counts]:
    """Return the type of the counts that the learners need."""
    if not _is_fixed(classifier.structure):
        return PairCounts
    needs = "families" if classifier.parameters is None else needs_of(classifier.parameters)
    return ContextCounts if needs == "contexts" else FamilyCounts


def _new_parameter_learner(classifier: Any) -> Any:
    """Set ``parameters_`` to an unfitted copy of the parameter learner, and return it."""
    given = classifier.parameters
    classifier.parameters_ = MaximumLikelihood() if given is None else clone(given, safe=False)
    if hasattr(classifier.parameters_, "column_names_"):
        classifier.parameters_.column_names_ = getattr(classifier, "feature_names_in_", None)
    return classifier.parameters_


def _structure_of_pairs(classifier: Any, pairs: PairCounts, rng: np.random.Generator) -> Structure:
    """Learn a structure from counts of pairs, with an unfitted copy of the structure learner."""
    classifier.structure_learner_ = clone(classifier.structure, safe=False)
    pairs.names = getattr(classifier, "feature_names_in_", None)
    structure: Structure = classifier.structure_learner_.from_counts(pairs, rng)
    check_structure(structure, pairs.n_features)
    return structure


def _no_rows(learner: Any) -> EncodedData:
    """Raise a ValueError for parameter learners that need rows in addition to counts."""
    if getattr(learner, "m", None) == "auto":
        raise ValueError(
            "m='auto' needs rows, because m is selected by leave-one-out predictions, but counts have no rows. Set m, "
            "for example m=1.0, or use HierarchicalDirichlet()."
        )
    raise ValueError(
        f"{type(learner).__name__} needs rows in addition to counts, but counts have no rows. Call fit with the rows, "
        f"or set parameters to a learner that needs only counts."
    )

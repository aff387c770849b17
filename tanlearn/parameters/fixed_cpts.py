"""CPTs from an expert for chosen columns, and learned CPTs for all other columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods

from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.tables import Tables
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.parameter_learner import needs_of
from tanlearn.structures.knowledge import ColumnNumbers
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["FixedCPTs"]

#: Largest difference between the sum of a distribution and 1 that is corrected.
_TOLERANCE = 1e-6


class FixedCPTs(BaseEstimator):
    """CPTs from an expert for chosen columns, and a parameter learner for all other columns.

    Parameters
    ----------
    cpts : dict
        Dictionary from names or positions of columns to CPTs. A CPT is an array of shape (n_values, n_classes), or
        (n_values, n_values of each parent, n_classes) for a column with parents in the network. Values are in the order
        of ``encoder_.categories_``, parents in the order of ``structure_.parents``, and classes in sorted order. For
        each class and each combination of parent values, the probabilities sum to 1 over the values of the column.
    parameters : parameter learner, optional
        Learner for all other CPTs and the class probabilities. It does not use the fixed CPTs. The default is
        :class:`~tanlearn.MaximumLikelihood`.

    See Also
    --------
    tanlearn.Knowledge : Required edges, so that a column has the parents that its CPT contains.
    tanlearn.read_bif : Read all CPTs from a file, and use them unchanged or as a prior.

    Notes
    -----
    The log joint is the sum of the logarithms of all CPTs, ``log p(y) + sum_i log p(x_i | parents_i, y)``. The CPT of a
    feature in ``cpts`` is the given CPT and does not depend on the rows.

    Examples
    --------
    >>> from tanlearn import FixedCPTs, NaiveBayesClassifier
    >>> X = [["no"], ["no"], ["yes"], ["no"]]  # a test that detects nine of ten ill persons
    >>> parameters = FixedCPTs(cpts={0: [[0.95, 0.1], [0.05, 0.9]]})  # rows: no, yes; columns: healthy, ill
    >>> model = NaiveBayesClassifier(parameters=parameters).fit(X, ["healthy", "healthy", "ill", "ill"])
    >>> model.predict_proba([["yes"]]).round(2).tolist()
    [[0.05, 0.95]]
    """

    counts_classes: ClassVar[bool] = True
    #: Names of the columns for :meth:`from_counts`, which are set by estimators, or None for columns without names.
    column_names_: Any = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cpts": [dict],
        "parameters": [None, HasMethods(["fit", "get_params"])],
    }

    def __init__(self, cpts: Mapping[Any, Any], *, parameters: Any = None) -> None:
        self.cpts = cpts
        self.parameters = parameters

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the other CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows.
        rng : numpy.random.Generator
            Random generator for ``parameters``.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If a column is unknown or occurs twice, or if a CPT has a shape that does not match the network, an invalid
            probability, or a distribution that does not sum to 1.
        TypeError
            If ``parameters`` returns CPTs that are sums of terms or back off to fewer parents.
        """
        self._validate_params()
        return self._replaced(self._new_learner().fit(structure, data, rng), ColumnNumbers(data.names, data.n_features))

    @property
    def needs(self) -> str:
        """Kind of data that the learner needs: counts of families if ``parameters`` only needs these, and else rows."""
        own = "families" if self.parameters is None else needs_of(self.parameters)
        return own if own == "families" else "rows"

    def from_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the CPTs for given counts.

        Parameters
        ----------
        layout : TableLayout
            Layout of the CPTs.
        counts : ndarray of shape (n_cells,)
            Weighted counts of all CPT entries.

        Returns
        -------
        Tables

        Raises
        ------
        ValueError
            If a column is unknown or listed twice, or a CPT is invalid, as in :meth:`fit`.
        """
        tables = self._new_learner().from_counts(layout, counts)
        return self._replaced(tables, ColumnNumbers(self.column_names_, layout.n_tables))

    def _new_learner(self) -> Any:
        """Return an unfitted learner for the other CPTs."""
        return MaximumLikelihood() if self.parameters is None else clone(self.parameters)

    def _replaced(self, tables: Tables, columns: ColumnNumbers) -> Tables:
        """Return a copy of ``tables`` that contains the fixed CPTs."""
        if type(tables) is not Tables:
            raise TypeError(
                f"parameters must return CPTs with entries that can be replaced, but {self.parameters!r} returns "
                f"{type(tables).__name__}. Use MaximumLikelihood() or another learner of complete CPTs."
            )
        layout, cells = tables.layout, tables.cells.copy()
        seen: set[int] = set()
        for name, given in self.cpts.items():
            i = columns.find("cpts", name)
            if i in seen:
                raise ValueError(
                    f"cpts contains X column {columns.shown[i]} twice, by name and by position. Remove one of them."
                )
            seen.add(i)
            parents = [columns.shown[j] for j in layout.parents[i].tolist() if j >= 0]
            p = _read_cpt(name, given, tuple(layout.shape(i)), parents)
            log_p = np.empty(p.size)
            log_all(p.ravel(), log_p)
            cells[layout.offset[i] : layout.offset[i + 1]] = log_p
        return Tables(layout, cells)


def _read_cpt(name: Any, given: Any, shape: tuple[int, ...], parents: list[str]) -> FloatArray:
    """Return a CPT whose distributions sum to 1. Raise ValueError if it is invalid."""
    try:
        p = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cpts[{name!r}] must be an array of numbers: {error}.") from None
    if p.shape != shape:
        axes = ["values", *(f"values of {parent}" for parent in parents), "classes"]
        wanted = ", ".join(f"{size} {axis}" for size, axis in zip(shape, axes, strict=True))
        raise ValueError(
            f"cpts[{name!r}] has shape {p.shape}, but the network needs {shape}: {wanted}. Change the CPT, or the "
            f"structure: Knowledge(required=...) adds parents."
        )
    if not ((p >= 0) & (p <= 1)).all():
        wrong = p[~((p >= 0) & (p <= 1))][0]
        raise ValueError(f"cpts[{name!r}] must contain probabilities from 0 to 1, got {wrong}.")
    sums = p.sum(axis=0)
    if (np.abs(sums - 1) > _TOLERANCE).any():
        place = tuple(np.argwhere(np.abs(sums - 1) > _TOLERANCE)[0].tolist())
        raise ValueError(
            f"the probabilities of all values must sum to 1, but cpts[{name!r}][:, {', '.join(map(str, place))}] "
            f"sums to {sums[place]:.6g}. Divide these probabilities by their sum."
        )
    return np.asarray(p / sums, np.float64)

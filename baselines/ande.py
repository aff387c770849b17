"""AnDE: averaged n-dependence estimators, A2DE and A3DE (Webb, Boughton, Zheng, Ting and Salem 2012).

In each estimator, every feature depends on the class and on n super-parents s. Averaging over s replaces its choice:

    p(y, x) = 1 / |S| * sum over s in S of p(y, x_s) * product over j not in s of p(x_j | y, x_s)

S contains the sets of n features whose joint value in the row has enough weight in the training rows.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from tanlearn._memory import check_memory
from tanlearn._threads import number_of_threads
from tanlearn._typing import IntArray, missing_code
from tanlearn._warnings import warn
from tanlearn.counts.counts_base import Counts
from tanlearn.counts.mutual_information import class_information
from tanlearn.counts.rounded_information import round_information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.counting_classifier import CountingClassifier
from tanlearn.kernels._lanes import padded
from tanlearn.models.model import Model
from tanlearn.structures.table_layout import TableLayout

from .n_dependence import NDependenceEnsemble
from .row_counts import RowCounts

__all__ = ["AnDEClassifier"]

#: Largest number of super-parents for ``max_super_parents="auto"``: 32,640 pairs, or 41,664 triples.
_MOST_SUPER_PARENTS = {2: 256, 3: 64}


class AnDEClassifier(CountingClassifier):
    """Averaged n-dependence estimators, n = 2 or 3: weaker independence assumptions than AODE, no structure search.

    CPTs over three and four features would be numerous and mostly empty. The model therefore stores the distinct
    training rows. To predict a row, it counts the training rows that agree with it on each set of super-parents.
    Fitting is fast. Prediction takes up to ``comb(d, n) * d`` additions for each pair of a distinct training row and a
    predicted row, so call ``predict`` on many rows at once.

    Parameters
    ----------
    n : {2, 3}, default=2
        Number of super-parents of each estimator. For n = 1 use :class:`~tanlearn.baselines.AODEClassifier`. Its CPTs
        are small enough to store, so it predicts single rows quickly and also runs on a CUDA device.
    m : float, default=1.0
        Weight of the uniform distribution in each estimate, (count + m / n_values) / (total + m). Values 0.03, 0.1,
        0.3, 1 and 3 were compared by cross-validation. On 21 data sets of up to 6,000 rows, m = 1 has the lowest A2DE
        error, 14.11 % (others 14.15 to 14.26 %), at a log loss of 0.381 (m = 3: 0.379, m = 0.1: 0.404). On 18 of these
        sets, m = 1 also has the lowest A3DE error, 15.60 % (others 15.71 to 15.83 %). On 21 other data sets the A2DE
        error is 16.18 % with m = 1 and 16.00 % with m = 0.1, at log losses of 0.422 and 0.432. The error of AODE on
        these data sets is 17.72 %, at a log loss of 0.461.
    min_count : float, default=1
        Minimum total weight of the training rows that contain the values of n features of a row for these features to
        be super-parents of the row. In the comparison of ``m``, 5 gives the same accuracy (A2DE 14.09 % error) and 30
        is worse (A2DE 14.39 %, A3DE 16.02 %). If no set of n features qualifies, sets of n - 1 features are used, and
        so on down to naive Bayes. With 0, all sets of n features are super-parents of each row, and the joint
        distribution sums to one.
    subsumption : bool, default=False
        Whether to ignore a value of a row that is implied by another value of the row, in training rows of total weight
        100 or more (Zheng and Webb 2006). In the comparison of ``m``, the error rises by 0.05 (A2DE) and 0.11 (A3DE)
        percentage points; the log loss of A2DE falls from 0.381 to 0.378.
    max_super_parents : int or "auto", default="auto"
        Maximum number of features that may be super-parents. The features with the largest mutual information with the
        class are chosen; the others are children only. "auto" is 256 for n = 2 and 64 for n = 3.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu"}, default="cpu"
        Accepted for compatibility with other classifiers. There are no CUDA kernels.
    n_jobs : int, optional
        Number of threads for encoding and prediction, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Ignored, because the learner is deterministic. It is accepted for compatibility with other classifiers.

    Attributes
    ----------
    ensemble_ : NDependenceEnsemble
        The estimators, with the training rows.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters of the CPTs of all estimators. These CPTs are never stored.

    Notes
    -----
    In prediction, a feature with a missing value is not used as a super-parent, and each estimator marginalizes it
    exactly. A training row is left out of the counts that involve one of its missing values.

    ``partial_fit`` adds the rows of each batch to the stored rows. The model is the same as after one ``fit`` on all
    rows, and grows with the number of rows.

    References
    ----------
    Webb, Boughton, Zheng, Ting, Salem: Learning by extrapolation from marginal to full-multivariate probability
    distributions: decreasingly naive Bayesian classification. Machine Learning 86, 2012.

    Zheng, Webb: Efficient lazy elimination for averaged one-dependence estimators. ICML 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.baselines import AnDEClassifier, AODEClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 4))
    >>> y = X[:, 0] ^ X[:, 1] ^ X[:, 2]  # no two features are informative together
    >>> AODEClassifier().fit(X, y).score(X, y) < 0.8, AnDEClassifier().fit(X, y).score(X, y)
    (True, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "n": [Options(Integral, {2, 3})],
        "m": [Interval(Real, 0, None, closed="neither")],
        "min_count": [Interval(Real, 0, None, closed="left")],
        "subsumption": ["boolean"],
        "max_super_parents": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "device": [StrOptions({"cpu"})],
    }

    _count_types: ClassVar[tuple[type[Counts], ...]] = (RowCounts,)
    _model_type: ClassVar[type[Model]] = NDependenceEnsemble

    def __init__(
        self,
        *,
        n: int = 2,
        m: float = 1.0,
        min_count: float = 1,
        subsumption: bool = False,
        max_super_parents: Any = "auto",
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n = n
        self.m = m
        self.min_count = min_count
        self.subsumption = subsumption
        self.max_super_parents = max_super_parents
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Store the distinct rows."""
        self._learn_counts(self._new_counts(data).update(data))

    def _new_counts(self, data: EncodedData) -> RowCounts:
        """Return empty row counts, after a check of the memory that prediction needs."""
        states, n_classes = data.n_states, data.n_classes
        n_cells = (int(states.sum()) + 1) * n_classes
        n_threads = number_of_threads(self.n_jobs)
        own = 8 * n_cells + 4 * (n_cells // n_classes) * padded(n_classes)
        check_memory(
            n_cells,
            n_threads * own + 4 * len(states) * int(states.sum()),
            0.0,
            f"the array of counts of {len(states)} features ({data.widest()} values) given their super-parents, "
            f"for each of {n_threads} threads,",
            "Lower n_jobs, or merge, discretize or leave out columns with so many values",
        )
        return RowCounts(states, n_classes)

    def _learn_counts(self, counts: RowCounts) -> None:
        """Build the ensemble from row counts, and warn if it is reduced to naive Bayes."""
        self.model_ = NDependenceEnsemble(
            counts, self.n, self._super_parents(counts), float(self.m), float(self.min_count), bool(self.subsumption)
        )
        missing = missing_code(counts.codes.dtype)
        for codes in counts.codes:
            is_known = codes != missing
            weight = np.bincount(codes[is_known], counts.weights[is_known], minlength=1)
            if weight.max() >= self.min_count:
                return
        warn(
            f"no feature value occurs in rows of total weight min_count={self.min_count}, so there are no "
            f"super-parents and the model is naive Bayes. Scale sample_weight to a mean of 1, or decrease min_count."
        )

    def _super_parents(self, counts: RowCounts) -> IntArray:
        """Return the indices of the features that may be super-parents, in increasing order."""
        limit = _MOST_SUPER_PARENTS[self.n] if self.max_super_parents == "auto" else self.max_super_parents
        n_features = len(counts.n_states)
        if n_features <= limit:
            return np.arange(n_features)
        layout = TableLayout.of_features(counts.n_states, counts.n_classes)
        cells = layout.count(counts.codes, counts.y, counts.weights)
        information = round_information(class_information(layout, cells))
        return np.sort(np.argsort(-information, kind="stable")[:limit])

    @property
    def ensemble_(self) -> NDependenceEnsemble:
        """The estimators, with the training rows."""
        ensemble: NDependenceEnsemble = self.model_
        return ensemble

    @property
    def size_bits_(self) -> int:
        """Size of the stored rows with their classes and weights, in bits."""
        counts = self.ensemble_.counts
        return 8 * (counts.codes.nbytes + counts.y.nbytes + counts.weights.nbytes)

    @property
    def n_operations_(self) -> int:
        """Worst-case number of multiplications and additions per prediction, if all stored rows agree with the row."""
        counts = self.ensemble_.counts
        n_features, n_inside = len(counts.n_states), len(self.ensemble_.super_parents)
        n = min(self.n, n_inside)
        each = (n_features - n + 1) * counts.n_classes + n_features * len(counts.y)
        return math.comb(n_inside, n) * each

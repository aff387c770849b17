"""The forest: random k-dependence networks, counted, and weighed by rows that they have not seen."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from tanlearn._typing import Codes, FloatArray
from tanlearn.data.border import generator
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.quantiles import QuantileDiscretizer
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.estimators.base import Classifier
from tanlearn.estimators.forest_reading import ForestReadingMixin
from tanlearn.estimators.partial_fit import PartialFitMixin
from tanlearn.estimators.row_sources import EncodedSource
from tanlearn.forest.counts import ForestCounts
from tanlearn.forest.drawing import Grain
from tanlearn.forest.forest import Forest
from tanlearn.forest.learning import Grown, Settings, grow_forest, weigh_forest
from tanlearn.forest.state import from_state, to_state
from tanlearn.network.structures import Structure

__all__ = ["BayesForestClassifier"]

#: Contexts keep the classes that they have seen in 16 bits.
_MOST_CLASSES = 2**16 - 1
#: Probabilities may be 1e-290 and no less: floating numbers keep all digits down to 1e-307.
_LEAST_EXPONENT = -290
#: Rows of a context at least, and contexts of a level at most: of 100,000 rows of 50 columns and of letter, four and
#: three times as many rows a context left log losses where they were (.885 to .880, and .117).
_LEAST_SAMPLES, _MOST_CONTEXTS = 5, 4096


def _is_joint(forest: Any) -> bool:
    """Refuse what only a joint distribution has."""
    raise AttributeError(
        f"{type(forest).__name__} is trained for classes given features, and says nothing of how likely the features "
        f"are. Use predict_log_proba, or a network such as NaiveBayesClassifier."
    )


class BayesForestClassifier(ForestReadingMixin, PartialFitMixin, Classifier):
    """A forest of random Bayesian networks: the first choice where a table is to be predicted, and not read.

    Every member cuts numbers otherwise, draws an order of the features, and gives each up to ``max_parents`` of the
    earlier ones as parents: of those drawn, the ones that say most about it given the class. Its probabilities are
    counts over the combinations of parents that occur, smoothed from level to level (one parent more a level). Then
    all is grown again without every fold, and what these twins say of rows that they have not seen decides how much
    levels, features, and single families count, by conditional likelihood. Nothing is held out of the forest itself.

    Parameters
    ----------
    n_estimators : int, default=32
        Members. More are better where classes are a function of many features, and cost in proportion.
    max_parents : int or "auto", default="auto"
        Most parents of a feature, from 0. "auto" are 4: what each further parent is worth is weighed by left-out rows,
        and with ``weights=None`` these choose how many are used.
    max_features : float or "auto", default="auto"
        Share of the earlier features that are drawn as candidates for parents, at most 32 of them, and fewer, to 8, of
        more than 256 features. "auto" is half of them, and at least four.
    n_cuts : int or array-like of two int, default=(3, 15)
        Fewest and most cuts of a feature with an order in a member, or one number for both; each feature's is drawn,
        and there are never more than between its values. Half of the features are cut where that takes most class
        entropy away in a bootstrap sample, the others anywhere.
    smoothing : float, default=1.0
        m of hierarchical smoothing: how many rows a level's parent is worth. Above 0, and not so small that products
        over the levels would end below the smallest floating number.
    min_samples : int or "auto", default="auto"
        Rows, whatever they weigh, that a combination of parents has at least, to be counted by itself; from 1 to
        2,147,483,647. "auto" are 5, or of more than 24,576 rows one in 4,096, so that a forest of many rows still has
        room in memory.
    weights : {"auto", "shared"} or None, default="auto"
        Which weights are fitted to out-of-fold predictions: with "shared" those of levels and features, with "auto"
        those of single families, too. Each set of weights is used only if it lowers the log loss of out-of-fold rows.
        With None nothing is weighed, and the networks' probabilities are averaged, with the number of parents of the
        least out-of-fold log loss.
    ridge : float or "auto", default="auto"
        Strength of the ridge that pulls weights of features and families to where they start: half the squared
        distance times the ridge is added to the mean log loss, in nats. "auto" selects it by the log loss of
        out-of-fold rows. Weights of any ridge that do not lower this loss stay where they start.
    n_folds : int, default=5
        Folds that are left out to find weights; there are never more than rows. Of many rows, not all folds are: 8,192
        rows are enough to find weights. Of up to 2,048 rows, weights are judged by twins that miss two folds.
    class_weight : None, "balanced" or dict, default=None
        Factors of the rows' weights by class; "balanced" gives all classes the same weight.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes, in sorted order, where they are others than in training.
    encoder : TableEncoder, optional
        How raw columns become codes. One without a ``discretizer`` of its own cuts numbers finely, at up to 1,023
        quantiles, as :class:`~tanlearn.QuantileDiscretizer` does.
    device : {"cpu"}, default="cpu"
        There are no kernels for others.
    n_jobs : int, optional
        Threads, as in joblib. Inside of ``joblib.parallel_config(backend="dask")``, or any other of processes, members
        are grown there, and weighed here. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Where members and folds are drawn from.
    warm_start : bool, default=False
        Keep the members of the fit before, if rows and how members are grown are the same, and grow only what
        ``n_estimators`` is more; another ``random_state`` is for the new ones. If it is the same number, the forest is
        the one that is grown at once. Weights are found anew.
    verbose : int, default=0
        With 1, what left-out rows say of every set of weights is printed.

    Attributes
    ----------
    forest_ : Forest
        Members and weights.
    structures_ : list of Structure
        Who depends on whom, of every member.
    feature_importances_ : ndarray of shape (n_features_in_,)
        What leaving a feature out costs rows that twins have not seen: the mean rise of their log loss, in nats.
    counts_ : ForestCounts
        After ``partial_fit``, what is counted in all members. ``model.counts_.empty()`` counts elsewhere, and
        ``model.counts_.merge(...)`` adds that up; :class:`~tanlearn.forest.counts.ForestCounts` says more.
    classes_ : ndarray of shape (n_classes,)
        Classes in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` had any.
    n_parameters_ : int
        Numbers that predictions are sums of.

    Notes
    -----
    Where a column has gaps in training, "missing" is a value like others: that something was not asked may say more
    than the answer. Where it has none, a missing child says nothing, and a missing parent ends the levels there.

    Members merge neighbouring values of what has an order: of numbers, even of few whole ones, and of pandas'
    categoricals with ``ordered=True``. Strings, truth values, other categoricals, and columns of numbers that an
    encoder names in ``discrete_features`` have none; codes (:meth:`fit_encoded`) have what their ``is_ordered`` says.

    The weighted forest is compared with the average of its networks and with the class frequencies by the log loss of
    out-of-fold rows (at most 2,048), and the best of the three is kept. The average is kept only if it is better than
    the weighted forest by two standard errors. Where features are only noise, the forest therefore predicts class
    frequencies. With ``weights=None`` nothing is compared but numbers of parents.

    With ``weights=None`` there is :meth:`partial_fit`. The first chunk decides on cuts, parents, the combinations of
    values that are counted, and how many parents are used; all chunks are counted in these, and counts add up. After
    it, only ``smoothing`` and ``class_prior`` still have a say, and importances are those of its rows.

    References
    ----------
    Sahami: Learning limited dependence Bayesian classifiers. KDD 1996. Zaidi, Webb et al.: Efficient parameter learning
    of Bayesian network classifiers. Machine Learning 106, 2017 (discriminative weights of generative parameters).
    Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using hierarchical
    Dirichlet processes. Machine Learning 107, 2018 (smoothing from level to level).

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import BayesForestClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (300, 4))
    >>> y = X[:, 0] ^ X[:, 1] ^ X[:, 2]  # no two features say anything
    >>> model = BayesForestClassifier(n_estimators=16, random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:])
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_parents": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "max_features": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "n_cuts": [tuple, list, np.ndarray, Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "min_samples": [Interval(Integral, 1, 2**31 - 1, closed="both"), StrOptions({"auto"})],
        "weights": [StrOptions({"auto", "shared"}), None],
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": [Interval(Integral, 0, None, closed="left")],
        "device": [StrOptions({"cpu"})],
    }
    _counted: ClassVar[tuple[type, ...]] = (ForestCounts,)
    forest_: Forest
    _grown: Grown | None = None

    def __init__(
        self,
        *,
        n_estimators: int = 32,
        max_parents: int | str = "auto",
        max_features: float | str = "auto",
        n_cuts: Any = (3, 15),
        smoothing: float = 1.0,
        min_samples: int | str = "auto",
        weights: str | None = "auto",
        ridge: float | str = "auto",
        n_folds: int = 5,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_parents = max_parents
        self.max_features = max_features
        self.n_cuts = n_cuts
        self.smoothing = smoothing
        self.min_samples = min_samples
        self.weights = weights
        self.ridge = ridge
        self.n_folds = n_folds
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _default_discretizer(self) -> QuantileDiscretizer:
        """Return a discretizer that leaves it to the members where to cut."""
        return QuantileDiscretizer(n_jobs=self.n_jobs)

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Grow the forest, and weigh it."""
        self.forest_ = self._make_forest(data, rng)

    def _new_counts(self, data: EncodedData) -> ForestCounts:
        """Return the contexts of a forest of the first chunk, in which chunks are counted."""
        if data.n_samples and (data.y == data.y[0]).all():
            raise ValueError(
                f"the first chunk has {data.n_samples:,} row(s) of one class only, but the networks of the forest are "
                f"drawn from it. Begin with a larger chunk of several classes."
            )
        return ForestCounts.of_forest(self._make_forest(data, generator(self.random_state)))

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Grow the contexts of a sample, and count all rows in them."""
        self.counts_ = rows.add_to(self._new_counts(rows.sample), n_jobs=self.n_jobs)
        self._learn_counts(self.counts_)

    def _learn_counts(self, counts: Any) -> None:
        """Take the forest of what is counted."""
        if len(counts.members) != self.n_estimators:
            raise ValueError(
                f"n_estimators is {self.n_estimators}, but the chunks so far were counted for another number. Begin "
                f"with a new classifier: clone(model).partial_fit(...)."
            )
        n_levels = counts.forest.weights.shape[2]
        self._check_smoothing(counts.class_counts.max(), n_levels, counts.most_values)
        self.forest_ = counts.smooth(float(self.smoothing), n_jobs=self.n_jobs)

    def _make_forest(self, data: EncodedData, rng: np.random.Generator) -> Forest:
        """Grow a forest, and weigh it."""
        if (data.weights == 0).any():  # rows of no weight are no rows of a context, of a fold, and no gaps
            data = data.take(data.weights > 0)
        if data.n_classes > _MOST_CLASSES:
            raise ValueError(
                f"a forest tells at most {_MOST_CLASSES:,} classes apart, got {data.n_classes:,}. y looks like an "
                f"identifier or a quantity: drop or merge rare classes, or cut the quantity into intervals."
            )
        is_ordered = np.zeros(data.n_features, np.bool_) if data.is_ordered is None else data.is_ordered
        grain = Grain(n_cuts=self._read_n_cuts())
        if not isinstance(self.max_parents, str):
            grain = replace(grain, max_parents=int(self.max_parents))
        if not isinstance(self.max_features, str):
            grain = replace(grain, max_features=float(self.max_features), min_candidates=0)
        n_levels = 1 + min(grain.max_parents, grain.max_candidates, data.n_features - 1)
        self._check_smoothing(np.bincount(data.y, data.weights).max(), n_levels, data.n_states.max())
        least = max(_LEAST_SAMPLES, data.n_samples // _MOST_CONTEXTS)
        settings = Settings(
            n_members=int(self.n_estimators),
            grain=grain,
            smoothing=float(self.smoothing),
            min_samples=least if isinstance(self.min_samples, str) else int(self.min_samples),
            weights=self.weights,
            ridge=None if isinstance(self.ridge, str) else float(self.ridge),
            n_folds=min(int(self.n_folds), data.n_samples),
        )
        say = print if self.verbose else lambda message: None
        before = self._grown if self.warm_start else None
        grown = grow_forest(data, is_ordered, settings, rng, n_jobs=self.n_jobs, before=before)
        self._grown = grown if self.warm_start else None
        return weigh_forest(data, is_ordered, settings, grown, rng, n_jobs=self.n_jobs, say=say)

    def _read_n_cuts(self) -> tuple[int, int]:
        """Return the fewest and most cuts."""
        given = self.n_cuts
        pair: list[Any] = [given, given] if np.ndim(given) == 0 else list(given)
        whole = len(pair) == 2 and all(isinstance(n, Integral) and not isinstance(n, bool) for n in pair)
        if not whole or not 1 <= pair[0] <= pair[1]:
            raise ValueError(
                f"n_cuts must be two whole numbers from 1, the fewest and the most cuts, or one for both, got "
                f"{given!r}."
            )
        return min(int(pair[0]), 2**16), min(int(pair[1]), 2**16)  # no feature has more values

    def _check_smoothing(self, heaviest: float, n_levels: int, most_values: int) -> None:
        """Refuse m with which a probability could vanish: what a class never shows has one of m / (n + m) a level."""
        m = float(self.smoothing)
        least = n_levels * (np.log10(m) - np.log10(heaviest + m)) - np.log10(most_values)
        if least < _LEAST_EXPONENT:
            raise ValueError(
                f"smoothing={m:g} is too little for classes that weigh up to {heaviest:.3g}: over {n_levels} levels "
                f"probabilities may be as small as 1e{least:.0f}, and must not be below 1e{_LEAST_EXPONENT}. Take "
                f"more smoothing or fewer max_parents, or divide the weights by a common factor."
            )

    def _log_joint(self, codes: Codes) -> FloatArray:
        """Return logarithms of what is proportional to the probabilities of the classes."""
        return self.forest_.log_scores(codes, n_jobs=self.n_jobs)

    @available_if(_is_joint)  # type: ignore[untyped-decorator]
    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Not available: a forest says nothing of how likely features are."""
        raise NotImplementedError

    @available_if(_is_joint)  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> FloatArray:
        """Not available: a forest says nothing of how likely features are."""
        raise NotImplementedError

    def _set_log_prior(self, log_prior: FloatArray) -> None:
        """Take other class probabilities in place of the frequencies in training."""
        self.forest_ = replace(self.forest_, shift=log_prior - self.forest_.log_frequency)

    @property
    def structures_(self) -> list[Structure]:
        """Who depends on whom, of every member."""
        parents = [member.tables.parents for member in self.forest_.members]
        return [Structure(own if own.size else np.full(len(own), -1)) for own in parents]

    @property
    def n_parameters_(self) -> int:
        """Numbers that predictions are sums of."""
        return sum(member.tables.gain.size + member.tables.unseen.size for member in self.forest_.members)

    def _get_state(self) -> dict[str, Any]:
        """Return what a file of the model holds beside parameters, classes and encoder."""
        return to_state(self.forest_)

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take what a file holds; classes and encoder are there already."""
        self.forest_ = from_state(state, self.encoder_.n_states_, len(self.classes_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_") and hasattr(self, "encoder_")

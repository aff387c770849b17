"""Checks of your own losses and learners: interface, gradient, randomness and weights.

The checks call the object with small random data, as ``sklearn.utils.estimator_checks`` does with estimators. An
``AssertionError`` states the expected result, the actual result and the remedy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.log_joint import log_joint
from tanlearn.parameters.parameter_learner import needs_of
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.losses import require_loss

__all__ = ["check_learner", "check_loss"]

#: Number of rows, and numbers of values of the features, in the data for checking learners.
N_ROWS, N_STATES, N_CLASSES = 120, (2, 3, 2, 4, 2), 3
#: Step of the finite differences, and the largest allowed error. A central difference in float64 has an error of about
#: 1e-9.
_STEP, _TOLERANCE = 1e-5, 1e-5
#: Fraction of derivatives that may differ, because a step may cross a kink of a piecewise loss.
_MAX_KINKS = 0.05


def check_loss(loss: Any, *, n_classes: int = 3, random_state: int = 0) -> None:
    """Check your own loss: shapes, dtypes, independence of rows, and the gradient against finite differences.

    Parameters
    ----------
    loss : object
        Object with the method ``value_and_gradient(scores, y)`` (see :class:`tanlearn.training.losses.Loss`).
    n_classes : int, default=3
        Number of classes, at least 2. If the loss works only for a certain number of classes, pass this number.
    random_state : int, default=0
        Seed for the random scores.

    Raises
    ------
    TypeError
        If the loss is a class, or has no ``value_and_gradient``.
    ValueError
        If ``n_classes`` is below 2.
    AssertionError
        If the loss does not return two arrays of the right shapes, modifies its arguments, returns nan, is not
        reproducible, or mixes rows, or if its gradient is wrong. The message states whether the gradient has the wrong
        sign or a wrong factor.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from tanlearn.checks import check_loss
    >>> class ExpectedError:
    ...     def value_and_gradient(self, scores, y):
    ...         p, true = softmax(scores, axis=1), np.eye(scores.shape[1])[y]
    ...         p_true = (p * true).sum(axis=1)
    ...         return 1 - p_true, p_true[:, np.newaxis] * (true - p)
    >>> check_loss(ExpectedError())
    Traceback (most recent call last):
    ...
    AssertionError: ExpectedError.value_and_gradient returns the gradient with the wrong sign: ... negate d_scores.
    """
    name = f"{type(loss).__name__}.value_and_gradient"
    require_loss(loss)
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}. Pass, for example, n_classes=3.")
    rng = np.random.default_rng(random_state)
    scores, y = rng.normal(0, 2, (40, n_classes)), rng.integers(0, n_classes, 40)

    def evaluate(rows: FloatArray, true: IntArray) -> tuple[FloatArray, FloatArray]:
        return _loss_of(loss, name, rows, true)

    try:
        values, gradient = evaluate(scores, y)
    except (IndexError, ValueError) as error:
        raise AssertionError(
            f"{name} fails for {n_classes} classes: {error}. If the loss works only for another number of classes, "
            "pass that number as n_classes."
        ) from error
    is_finite = np.isfinite(values) & np.isfinite(gradient).all(axis=1)
    _expect(
        bool(is_finite.all()),
        f"{name} returns nan or infinity for finite scores, first in row {int(is_finite.argmin())}. Use stable "
        f"functions such as scipy.special.log_softmax.",
    )
    again = evaluate(scores, y)
    _expect(
        np.array_equal(values, again[0]) and np.array_equal(gradient, again[1]),
        f"{name} returns different values for the same arguments. Do not store a state or draw random numbers in a "
        f"loss.",
    )
    part = evaluate(scores[5:17], y[5:17])
    _expect(
        np.allclose(part[0], values[5:17]) and np.allclose(part[1], gradient[5:17]),
        f"{name} returns different values for a row if other rows are left out, but rows must be independent. "
        f"Return one loss per row, not divided by the number of rows; the caller computes the mean.",
    )
    _check_gradient(name, lambda rows: evaluate(rows, y)[0], scores, gradient)
    impossible = scores.copy()
    impossible[np.arange(40), (y + 1) % n_classes] = -np.inf  # a class other than the true one
    found = evaluate(impossible, y)
    _expect(
        not np.isnan(found[0]).any() and not np.isnan(found[1]).any(),
        f"{name} returns nan if the score of a wrong class is -inf (probability 0). Use functions such as "
        f"scipy.special.log_softmax, which accept -inf.",
    )
    single = evaluate(scores.astype(np.float32), y)
    _expect(
        np.allclose(single[0], values, rtol=1e-3, atol=1e-3),
        f"{name} returns different values for float32 and float64 scores, but trainings use float32. Use stable "
        f"functions such as scipy.special.log_softmax.",
    )


def _loss_of(loss: Any, name: str, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
    """Call the loss with copies of the arguments, check types and shapes of the results, and return the results."""
    own_scores, own_y = scores.copy(), y.copy()
    returned = loss.value_and_gradient(own_scores, own_y)
    _expect(
        isinstance(returned, tuple) and len(returned) == 2,
        f"{name} must return a tuple (loss, d_scores), got an object of type {type(returned).__name__}.",
    )
    for what, found, shape in (("loss", returned[0], y.shape), ("d_scores", returned[1], scores.shape)):
        _expect(
            np.ndim(found) > 0,
            f"{name} must return one number per row, but {what} is a single number. Return the loss of each row; "
            f"the caller computes the mean.",
        )
        _expect(
            isinstance(found, np.ndarray),
            f"{name} must return arrays, but {what} is of type {type(found).__name__}. Convert it with "
            f"np.asarray({what}).",
        )
        _expect(
            found.shape == shape,
            f"{name} must return {what} of shape {shape}, {'one per row' if what == 'loss' else 'one per score'}; "
            f"got {found.shape}.",
        )
        _expect(
            found.dtype == scores.dtype or scores.dtype != np.float64,
            f"{name} must return {what} with the dtype of the scores, float64, got {found.dtype}. Compute it with "
            f"the dtype of scores.",
        )
    _expect(
        np.array_equal(own_scores, scores) and np.array_equal(own_y, y),
        f"{name} changes its arguments in place. Work on a copy, such as scores.copy().",
    )
    return returned


def _check_gradient(
    name: str, values_of: Callable[[FloatArray], FloatArray], scores: FloatArray, gradient: FloatArray
) -> None:
    """Compare the gradient with central differences, computed for all rows at once, because rows are independent."""
    expected = np.empty_like(scores)
    for c in range(scores.shape[1]):
        step = np.zeros(scores.shape[1])
        step[c] = _STEP
        expected[:, c] = (values_of(scores + step) - values_of(scores - step)) / (2 * _STEP)
    scale = np.maximum(1.0, np.abs(expected))

    def differs(found: FloatArray) -> Any:
        return np.abs(found - expected) > _TOLERANCE * scale

    def is_right(found: FloatArray) -> bool:
        return bool(differs(found).mean() <= _MAX_KINKS)

    if is_right(gradient):
        return
    row, c = (int(i) for i in np.argwhere(differs(gradient))[0])
    where = f"derivative of row {row} by the score of class {c}: {gradient[row, c]:.6g}, by differences "
    where += f"{expected[row, c]:.6g}"
    _expect(
        not is_right(-gradient),
        f"{name} returns the gradient with the wrong sign: {where}. The loss is minimized, so negate d_scores.",
    )
    size = float(np.sum(gradient * gradient))
    factor = float(np.sum(gradient * expected)) / size if size else 0.0
    _expect(
        not is_right(factor * gradient),
        f"{name} returns {1 / factor if factor else 0:.6g} times the right gradient: {where}. Return the gradient "
        f"of each row's loss; the caller computes the mean.",
    )
    raise AssertionError(f"{name} returns a wrong gradient in {differs(gradient).mean():.0%} of the entries, {where}.")


def check_learner(learner: Any, *, random_state: int = 0) -> None:
    """Check your own structure learner or parameter learner on small random data.

    Parameters
    ----------
    learner : object
        Structure learner, with the method ``learn(data, rng)``, or parameter learner, with the method ``fit(structure,
        data, rng)`` (see :class:`~tanlearn.parameters.parameter_learner.ParameterLearner`).
    random_state : int, default=0
        Seed for the data, and for the random generators that are passed to the learner.

    Raises
    ------
    TypeError
        If the learner is a class, or has neither method.
    AssertionError
        If the learner returns an object of a wrong type or a network with a wrong number of features, modifies the
        data, or returns different results for the same seed. Also if its CPTs contain nan or do not sum to one, if its
        ``from_counts`` disagrees with ``learn`` or ``fit``, if its ``history_`` has a wrong format, or if the learner
        is deterministic, but rows of weight 0 change the result.

    Examples
    --------
    >>> from tanlearn.baselines import ChowLiu
    >>> from tanlearn.checks import check_learner
    >>> check_learner(ChowLiu())
    >>> class Chain:
    ...     def learn(self, data, rng):
    ...         return list(range(-1, data.n_features - 1))
    >>> check_learner(Chain())
    Traceback (most recent call last):
    ...
    AssertionError: Chain.learn must return a Structure, got an object of type list. Convert the result: return
    Structure(parents).
    """
    kind = type(learner).__name__
    if isinstance(learner, type):
        raise TypeError(f"learner must be an object, got the class {learner.__name__}. Pass {learner.__name__}().")
    can_learn, can_fit = (callable(getattr(learner, method, None)) for method in ("learn", "fit"))
    if not can_learn and not can_fit:
        raise TypeError(
            f"{kind} must have learn(data, rng) (a structure learner) or fit(structure, data, rng) (a parameter "
            f"learner). Add one of them."
        )
    if callable(getattr(learner, "predict", None)):
        raise TypeError(
            f"{kind} has a method predict, so it is a classifier, not a learner. Use check_estimator of "
            f"sklearn.utils.estimator_checks."
        )
    data = _random_rows(random_state)
    if can_learn:
        _check_structure_learner(learner, kind, data, random_state)
    else:
        _check_parameter_learner(learner, kind, data, random_state)
    _check_history(learner, kind)


def _random_rows(seed: int) -> EncodedData:
    """Return rows with weights 0, 1 and 2, without missing values. Features depend on the class and on each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, N_ROWS)
    codes = np.stack([(y * rng.integers(0, 2, N_ROWS) + rng.integers(0, n, N_ROWS)) % n for n in N_STATES], axis=1)
    codes[:, 2] = np.where(rng.random(N_ROWS) < 0.7, codes[:, 0], codes[:, 2])
    weight = rng.integers(0, 3, N_ROWS)
    return EncodedData.from_codes(codes, y, n_states=N_STATES, n_classes=N_CLASSES, sample_weight=weight)


def _unchanged(learner: Any, method: str, kind: str, data: EncodedData, *arguments: Any) -> Any:
    """Return the result of a method for a copy of the rows. Fail if the method modifies the copy."""
    own = data.take(np.arange(data.n_samples))
    result = getattr(learner, method)(*arguments[:-1], own, arguments[-1])
    is_same = all(np.array_equal(getattr(own, name), getattr(data, name)) for name in ("codes", "y", "weights"))
    _expect(is_same, f"{kind}.{method} changes the data. Work on copies of data.codes, data.y and data.weights.")
    return result


def _check_structure_learner(learner: Any, kind: str, data: EncodedData, seed: int) -> None:
    """Check a structure learner on rows, on the same rows again, and on the rows of nonzero weight."""

    def learn(rows: EncodedData, own_seed: int = seed) -> Structure:
        found = _unchanged(learner, "learn", kind, rows, np.random.default_rng(own_seed))
        _expect(
            found is not None, f"{kind}.learn must return a Structure, got None. End it with: return Structure(...)"
        )
        _expect(
            isinstance(found, Structure),
            f"{kind}.learn must return a Structure, got an object of type {type(found).__name__}. Convert "
            f"the result: return Structure(parents).",
        )
        _expect(
            found.n_features == rows.n_features,
            f"{kind}.learn must return a structure with {rows.n_features} features, like the rows, got "
            f"{found.n_features}.",
        )
        return found

    structure = learn(data)
    for other in (seed, seed + 1):
        with _other_global_seed(other):
            _expect(learn(data) == structure, _not_reproducible(f"{kind}.learn"))
    if learn(data, seed + 1) == structure:  # leaving out rows would change the random numbers of a random learner
        present = data.present()
        _expect(learn(present) == structure, _ignores_weights(f"{kind}.learn"))
    if needs_of(learner) == "pairs":
        from tanlearn.counts.pair_counts import PairCounts

        counts = PairCounts.of_features(data).update(data)
        found = learner.from_counts(counts, np.random.default_rng(seed))
        _expect(
            found == structure,
            f"{kind}.from_counts and {kind}.learn must return the same structure for the same rows, got {found} and "
            f"{structure}.",
        )


def _check_parameter_learner(learner: Any, kind: str, data: EncodedData, seed: int) -> None:
    """Check a parameter learner on a fixed structure. CPTs are compared through the log joint of all possible rows."""
    structure = Structure([-1, 0, 0, 2, -1])
    every = np.array(list(itertools.product(*map(range, N_STATES))))
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=N_STATES, n_classes=N_CLASSES).codes

    def scores(tables: Any) -> FloatArray:
        found: FloatArray = log_joint(tables, structure, codes)
        _expect(
            found.shape == (len(every), N_CLASSES),
            f"{kind}.fit must return CPTs for {N_CLASSES} classes, like the data, got {found.shape[1]}.",
        )
        _expect(not np.isnan(found).any(), f"{kind}.fit must return CPTs without nan. Use -inf for the logarithm of 0.")
        return found

    def fit(rows: EncodedData, own_seed: int = seed) -> FloatArray:
        tables = _unchanged(learner, "fit", kind, rows, structure, np.random.default_rng(own_seed))
        _expect(
            tables is not None, f"{kind}.fit must return Tables, got None. End it with: return Tables(layout, cells)"
        )
        _expect(
            callable(getattr(tables, "scorer", None)),
            f"{kind}.fit must return Tables, got an object of type {type(tables).__name__}. Return "
            f"Tables(layout, cells) with layout = TableLayout.of_parents(structure.parents, data.n_states, "
            f"data.n_classes).",
        )
        found = scores(tables)
        total = float(np.exp(found).sum())
        _expect(
            abs(total - 1) < 1e-6 or not getattr(tables, "is_normalized", True),
            f"the probabilities of all possible rows and classes must sum to 1, but with the CPTs of {kind}.fit "
            f"they sum to {total:.6g}. Normalize each distribution, or return Tables(..., is_normalized=False).",
        )
        return found

    found = fit(data)
    for other in (seed, seed + 1):
        with _other_global_seed(other):
            _expect(np.array_equal(fit(data), found), _not_reproducible(f"{kind}.fit"))
    if np.array_equal(fit(data, seed + 1), found):  # as for structures
        present = data.present()
        _expect(np.allclose(fit(present), found), _ignores_weights(f"{kind}.fit"))
    if needs_of(learner) == "families":
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        counts = layout.count(data.codes, data.y, data.weights)
        _expect(
            np.allclose(scores(learner.from_counts(layout, counts)), found),
            f"{kind}.from_counts and {kind}.fit must return the same CPTs for the same rows, but they differ.",
        )


def _check_history(learner: Any, kind: str) -> None:
    """Check the history of a search or training, if the learner stores it."""
    history = getattr(learner, "history_", [])
    for k, entry in enumerate(history):
        missing = [name for name in ("step", "score", "n_evaluations", "seconds") if not hasattr(entry, name)]
        _expect(
            not missing,
            f"entry {k} of {kind}.history_ lacks {', '.join(missing)}. Use tanlearn.baselines.ParentChange for "
            f"structures and tanlearn.Iteration for parameters.",
        )
    for name in ("step", "n_evaluations", "seconds"):
        values = [getattr(entry, name) for entry in history]
        _expect(values == sorted(values), f"{name} must not decrease along {kind}.history_, got {values}.")


def _not_reproducible(what: str) -> str:
    """Return the message for a result that is not determined by data and seed."""
    return (
        f"{what} returns a different result for the same data and seed. Take all random numbers from rng, and set "
        f"fitted attributes again in each call."
    )


def _ignores_weights(what: str) -> str:
    """Return the message for a result that depends on rows of weight 0."""
    return f"{what} returns a different result if the rows of weight 0 are left out. Weight the rows by data.weights."


def _expect(is_met: bool, message: str) -> None:
    """Raise AssertionError unless a condition is met, even under ``python -O``, which skips ``assert`` statements."""
    if not is_met:
        raise AssertionError(message)


@contextmanager
def _other_global_seed(seed: int) -> Iterator[None]:
    """Reseed NumPy's global generator within this context. A learner that uses it is then not reproducible."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002

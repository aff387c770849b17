"""Records of the progress of learning, with ``step``, ``score``, ``n_evaluations`` and ``seconds``."""

from __future__ import annotations

from dataclasses import dataclass, field

from tanlearn._clock import learning_clock

__all__ = ["EpochReport", "Iteration", "Stopwatch"]


@dataclass(frozen=True)
class EpochReport:
    """Report that is passed to the callback after each epoch.

    Parameters
    ----------
    epoch : int
        Number of the epoch, counted from 1.
    n_epochs : int
        Planned number of epochs.
    loss : float
        Mean training loss of the drawn structures over the epoch.
    learning_rate : float
        Learning rate of the CPTs in the epoch.
    temperature : float
        Softmax temperature in the epoch.
    structure_entropy : float
        Mean entropy of the candidate distributions of the features, in nats. It is 0 if every choice is certain.
    validation_error : float or None
        Fraction of validation rows that the most probable structure misclassifies.
    seconds : float, default=0.0
        Wall-clock time from the start of the training to the end of the epoch, without the compilation of kernels.
        Comparisons of reports ignore it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import TANClassifier
    >>> model = TANClassifier(n_epochs=3, random_state=0).fit(*load_iris(return_X_y=True))
    >>> [report.epoch for report in model.history_]
    [1, 2, 3]
    """

    epoch: int
    n_epochs: int
    loss: float
    learning_rate: float
    temperature: float
    structure_entropy: float
    validation_error: float | None
    seconds: float = field(default=0.0, compare=False, repr=False)

    @property
    def step(self) -> int:
        """Number of the epoch."""
        return self.epoch

    @property
    def score(self) -> float:
        """Score that the training maximizes: minus the loss."""
        return -self.loss

    @property
    def n_evaluations(self) -> int:
        """Number of passes over the training rows."""
        return self.epoch


@dataclass(frozen=True)
class Iteration:
    """Progress of a parameter learner after an iteration.

    Parameters
    ----------
    step : int
        Number of the iteration. 0 is the start of the search.
    loss : float
        Objective that the learner minimizes.
    n_evaluations : int
        Number of evaluations of the objective on all training rows.
    seconds : float
        Wall-clock time from the start of the search, without the compilation of kernels. Comparisons of records ignore
        it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import ConjugateGradient, NaiveBayesClassifier
    >>> model = NaiveBayesClassifier(parameters=ConjugateGradient(max_iter=5)).fit(*load_iris(return_X_y=True))
    >>> [iteration.step for iteration in model.parameters_.history_]
    [0, 1, 2, 3, 4, 5]
    """

    step: int
    loss: float
    n_evaluations: int
    seconds: float = field(compare=False, repr=False)

    @property
    def score(self) -> float:
        """Score that the learner maximizes: minus the loss."""
        return -self.loss


class Stopwatch:
    """Time since the start of a search, without compilation, and number of evaluations since then."""

    def __init__(self) -> None:
        self._started = learning_clock()
        self.n_evaluations = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return learning_clock() - self._started

    def iteration(self, step: int, loss: float) -> Iteration:
        """Return the record of an iteration that has just ended."""
        return Iteration(step, float(loss), self.n_evaluations, self.seconds)

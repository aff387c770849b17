"""``tanlearn ask``: ask for the most informative column, again and again, until a class is probable enough."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tanlearn.cli.given_values import check_column, frame_of, given_values, note_unknown, plain, typed
from tanlearn.cli.messages import listed, note, plain_errors
from tanlearn.cli.models import ModelArgument, ModelFile

if TYPE_CHECKING:
    from tanlearn._typing import FloatArray

__all__ = ["ask"]

#: Maximum numbers of categories and of classes that are shown.
_N_VALUES, _N_CLASSES = 20, 3


class GainName(StrEnum):
    """Values of ``--gain``."""

    INFORMATION = "information"
    ACCURACY = "accuracy"


def ask(
    model: ModelArgument,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VALUE]...",
            help="Known values, such as age=31 town=Graz, or a JSON object, such as '{\"age\": 31}'.",
        ),
    ] = None,
    sure: Annotated[
        float, typer.Option(min=0, max=1, help="Stop when a class has at least this probability; 1 asks all questions.")
    ] = 0.95,
    most: Annotated[int | None, typer.Option(min=0, help="Stop after this number of questions.")] = None,
    cost: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=COST", help="Cost of asking for a column, by default 1; comma-separated or repeated."
        ),
    ] = [],  # noqa: B006 - Typer makes a new list
    without: Annotated[
        list[str], typer.Option(metavar="NAME", help="Columns that must not be asked for; comma-separated or repeated.")
    ] = [],  # noqa: B006
    gain: Annotated[GainName, typer.Option(help="Quantity that each question should increase.")] = GainName.INFORMATION,
    depth: Annotated[int, typer.Option(min=1, help="Number of questions to plan ahead.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Ask for values of a row, the most informative ones first, until a class is probable enough.

    Answers are read from standard input, one per line. An empty line means no answer.
    """
    with plain_errors():
        questionnaire = Questionnaire(ModelFile(model), given or [], _split(without), _costs(cost), str(gain), depth)
        reason = questionnaire.run(sure, math.inf if most is None else most)
        questionnaire.print_result(reason, as_json=as_json)


def _split(words: list[str]) -> list[str]:
    """Return comma-separated and repeated words as one list."""
    return [name.strip() for word in words for name in word.split(",") if name.strip()]


def _costs(words: list[str]) -> dict[str, float]:
    """Parse words ``name=cost``, and return a dictionary from columns to costs."""
    found: dict[str, float] = {}
    for word in _split(words):
        name, _, number = word.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            found[""] = math.nan
        if not name or not 0 < found[name.strip()] < math.inf:
            raise ValueError(f"--cost must be NAME=COST with a positive number, such as age=2, got {word!r}.")
    return found


class Questionnaire:
    """Known values of one row, and the questions that remain."""

    def __init__(
        self,
        file: ModelFile,
        given: list[str],
        without: list[str],
        costs: dict[str, float],
        gain: str,
        depth: int,
    ) -> None:
        if not hasattr(file.classifier, "next_feature"):
            raise ValueError(
                f"questions need a single network, but {file.path} contains a {type(file.classifier).__name__}. Fit "
                f"another learner."
            )
        for name in [*without, *costs]:
            check_column(file, name)
        self._file, self._costs, self._gain, self._depth = file, costs, gain, depth
        self._known = given_values(file, given, "a JSON object") if given else {}
        note_unknown(file, file.prepare(frame_of(file, self._known), "the row"))
        self._unanswered = [name for name in without if self._known.get(name) is None]
        self._n_asked, self._is_terminal = 0, is_terminal()
        self._update()

    def _update(self) -> None:
        """Compute the class probabilities and the gains of the remaining columns."""
        from tanlearn.estimators.partial_rows import (
            PartialRows,
            best_features,
            class_probabilities,
            gains_of,
            read_costs,
            read_gain,
        )

        classifier = self._file.classifier
        frame = self._file.prepare(frame_of(self._file, self._known), "the row")
        rows = PartialRows.read(classifier, frame, self._unanswered)
        options = read_gain(classifier, self._gain), read_costs(classifier, self._costs), self._depth
        self.probabilities: FloatArray = class_probabilities(classifier, rows.codes)[0][0]
        self._next = int(best_features(classifier, rows, *options)[0])
        information = gains_of(classifier, rows, read_gain(classifier, "information"), *options[1:])
        self._is_useful = bool((information > 0).any())

    def run(self, sure: float, most: float) -> str:
        """Ask until a stopping rule applies, and describe the rule."""
        n_columns = len(self._file.names)
        while True:
            count = f"after {self._n_asked} of {n_columns} questions"
            if self.probabilities.max() >= sure and sure < 1:
                return f"{count}: a class has a probability of {sure:.3g}"
            if self._next < 0:
                return f"{count}: no column is left"
            if not self._is_useful:
                return f"{count}: no other column changes the probabilities"
            if self._n_asked >= most:
                return f"{count}: limit of --most reached"
            if not self._ask(self._next):
                return f"{count}: end of the input"
            self._update()
            typer.echo(f"   {self._ranked(_N_CLASSES)}", err=True)

    def _ask(self, i: int) -> bool:
        """Ask for a column, store the answer, and return whether there was an answer."""
        name = self._file.names[i]
        question = f"{self._n_asked + 1}. {name}? ({self._allowed(i)}; empty: no answer) "
        while True:
            typer.echo(question, nl=False, err=True)
            line = "" if sys.stdin is None else sys.stdin.readline()
            if not line or not self._is_terminal:
                typer.echo(line.strip(), err=True)  # for transcripts, because only terminals show the answer itself
            if not line:
                return False
            try:
                value = self._read(i, line.strip())
                break
            except ValueError as error:
                if not self._is_terminal:
                    raise
                note(str(error))
        self._n_asked += 1
        if value is None:
            self._unanswered.append(name)
        else:
            self._known[name] = value
        return True

    def _allowed(self, i: int) -> str:
        """Describe the allowed values of a column."""
        known, bounds = self._file.classifier.encoder_.categories_[i], self._file.classifier.encoder_.value_ranges_[i]
        if known is not None:
            return listed([str(plain(value)) for value in known.tolist()], _N_VALUES)
        return "a number" if bounds is None else f"a number, {bounds[0]:.6g} to {bounds[1]:.6g} in training"

    def _read(self, i: int, text: str) -> Any:
        """Convert an answer to a value of a column. No answer is None."""
        name, known = self._file.names[i], self._file.classifier.encoder_.categories_[i]
        if not text:
            return None
        if known is None:
            is_comma = self._file.notation is not None and self._file.notation.decimal == ","
            value = typed(text.replace(",", ".") if is_comma else text, is_text=False)
            try:  # dates become numbers
                number = float(self._file.prepare(frame_of(self._file, {name: value}), "the row")[name].iloc[0])
            except ValueError:
                number = math.nan
            if isinstance(value, bool) or not math.isfinite(number):
                raise ValueError(
                    f"{name!r} must be a finite number, or a date in a column of dates, got {text!r}. Write a date as "
                    "in 2026-01-31."
                )
            return value
        values = {str(plain(value)): value for value in known.tolist()}
        for match in (str.__eq__, _equal_folded, _begins_with):
            found = [shown for shown in values if match(shown, text)]
            if len(found) == 1:
                return values[found[0]]
        raise ValueError(f"{name!r} must be one of {self._allowed(i)}, got {text!r}.")

    def _ranked(self, most: int) -> str:
        """Return a text with the most probable classes and their probabilities."""
        order = np.argsort(-self.probabilities, kind="stable")
        labels = self._file.classifier.classes_.tolist()
        shown = ", ".join(f"{labels[c]} {self.probabilities[c]:.1%}" for c in order[:most].tolist())
        return shown + (", ..." if len(order) > most else "")

    def print_result(self, reason: str, *, as_json: bool) -> None:
        """Print the class and its probability, and on stderr the reason for stopping."""
        classifier = self._file.classifier
        scores = self.probabilities
        predicted = classifier.classes_.tolist()[int(scores.argmax())]
        note(f"{reason}.")
        if not as_json:
            typer.echo(f"{predicted}   ({self._ranked(5)})")
            return
        labels = map(str, classifier.classes_.tolist())
        result = {
            "prediction": str(predicted),
            "probabilities": dict(zip(labels, scores.tolist(), strict=True)),
            "values": {name: plain(value) for name, value in self._known.items()},
            "unanswered": self._unanswered,
            "n_questions": self._n_asked,
        }
        typer.echo(json.dumps(result, indent=2))


def is_terminal() -> bool:
    """Return whether answers are typed on a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def _equal_folded(value: str, text: str) -> bool:
    """Return whether an answer equals a value, ignoring upper and lower case."""
    return value.casefold() == text.casefold()


def _begins_with(value: str, text: str) -> bool:
    """Return whether a value begins with an answer."""
    return value.casefold().startswith(text.casefold())

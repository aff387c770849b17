"""Selection of learners by name or table size, with settings from the user."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import tanlearn
from tanlearn.cli.messages import nearest

if TYPE_CHECKING:
    from tanlearn.baselines import Learner


__all__ = ["DEFAULT_LEARNERS", "change", "default_learner", "default_learners", "find_learners", "named_learner"]

#: Default learners of ``compare``, fast ones first.
DEFAULT_LEARNERS = ("NB ML", "TAN-CMI ML", "BayesForest", "Term-TAN", "BayesEnsemble", "TAN Order-free HYB")
#: Default learners of ``fit``, in order of increasing accuracy. The last learner that the table size allows is used.
_FIT_LEARNERS = ("TAN-CMI ML", "BayesForest", "BayesEnsemble")
#: Maximum table size (rows times columns) at which a learner is a default, depending on its cost. On adult, with
#: 684,000 values, some of them missing, a fold takes 0.03 s of processor time for TAN-CMI ML, and 10 s for TAN
#: Order-free HYB.
_MOST_NUMBERS = {2: 10_000_000, 3: 1_000_000, 4: 1_000_000}

#: Remedies for parameters of monotone columns, for learners without these parameters.
_MONOTONE = {
    name: (
        f" Use --learner BoostedTerms, or --learner 'NB ML' with "
        f"--set \"parameters=MonotoneLikelihood({name}=['age'])\"."
    )
    for name in ("increasing", "decreasing")
}


def find_learners(options: Sequence[str], n_numbers: int) -> list[Learner]:
    """Return the learners that are named in options, without duplicates, fast ones first, or the default learners."""
    from tanlearn.baselines import LEARNERS, find_learner

    names = [name for option in options for name in map(str.strip, option.split(",")) if name]
    if "all" in map(str.lower, names):
        found = list(LEARNERS.values())
    else:
        found = list(dict.fromkeys(map(find_learner, names))) if options else default_learners(n_numbers)
    return sorted(found, key=lambda learner: learner.cost)


def default_learners(n_numbers: int) -> list[Learner]:
    """Return the default learners of a comparison, for a table size (rows times columns)."""
    from tanlearn.baselines import LEARNERS

    return [LEARNERS[name] for name in DEFAULT_LEARNERS if n_numbers <= _limit(name)]


def default_learner(n_numbers: int) -> Learner:
    """Return the default learner of ``fit``, for a table size (rows times columns)."""
    from tanlearn.baselines import LEARNERS

    return LEARNERS[[name for name in _FIT_LEARNERS if n_numbers <= _limit(name)][-1]]


def _limit(name: str) -> float:
    """Return the maximum table size at which a learner is a default."""
    from tanlearn.baselines import LEARNERS

    return _MOST_NUMBERS.get(LEARNERS[name].cost, float("inf"))


def named_learner(name: str | None, n_numbers: int) -> Learner:
    """Return the learner with this name, or the default for a table size."""
    from tanlearn.baselines import find_learner

    return default_learner(n_numbers) if name is None else find_learner(name)


def change(estimator: Any, settings: Sequence[str]) -> Any:
    """Set parameters of an estimator, in place, from strings ``name=value``."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"--set must be name=value, got {setting!r}.")
        name, value = name.strip(), _value(text.strip())
        try:
            estimator.set_params(**{name: value})
        except (AttributeError, ValueError) as error:  # the value has no parameters, or no such parameter
            known = estimator.get_params(deep=True)
            hint = _nested(name, [*known, *_of_default_parts(estimator, name, value)])
            hint = hint or _MONOTONE.get(name, "") or nearest(name, known)
            raise ValueError(
                f"{type(estimator).__name__} has no parameter {name!r}.{hint} Its parameters are: "
                f"{', '.join(sorted(known))}."
            ) from error
    return estimator


def _of_default_parts(estimator: Any, name: str, value: Any) -> list[str]:
    """Set parameters of components that are None by default, such as ``forest__n_estimators`` of an ensemble."""
    from sklearn.base import clone

    found = []
    for part in [own for own, given in estimator.get_params(deep=False).items() if given is None]:
        path = f"{part}__{name}"
        with suppress(AttributeError, TypeError, ValueError):
            clone(estimator).set_params(**{path: value})
            found.append(path)
    return found


def _nested(name: str, known: Collection[str]) -> str:
    """Return a question that suggests parameters of components with this name, or an empty string."""
    paths = [repr(path) for path in sorted(known) if path.endswith(f"__{name}")]
    return f" Did you mean {' or '.join(paths[:3])}?" if paths else ""


def _value(text: str) -> Any:
    """Parse the value of a setting: a number, an object of this library with its parameters, or a string."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return text
    except (MemoryError, RecursionError):
        raise ValueError(f"--set: the value must not be nested so deeply, got {text[:40]}....") from None
    return _evaluated(tree, text)


def _evaluated(tree: ast.expr, text: str) -> Any:
    """Evaluate an expression of literals and objects of this library, without running any other code."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        made = _class(tree.func.id)
        if made is not None:
            given = [_evaluated(argument, text) for argument in tree.args]
            return made(*given, **{str(keyword.arg): _evaluated(keyword.value, text) for keyword in tree.keywords})
    if isinstance(tree, ast.Name) and _class(tree.id) is not None:
        return _class(tree.id)()
    try:
        return ast.literal_eval(tree)
    except ValueError:
        return text


def _class(name: str) -> Any:
    """Return the public class with a given name if it has parameters, or None."""
    from tanlearn import baselines

    for package in (tanlearn, baselines):
        found = getattr(package, name, None) if name in package.__all__ else None
        if isinstance(found, type) and hasattr(found, "get_params"):
            return found
    return None

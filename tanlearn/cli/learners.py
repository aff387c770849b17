"""Which learner: by name, by the size of the table, and with settings of the user's."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tanlearn
from tanlearn.cli.messages import nearest

if TYPE_CHECKING:
    from tanlearn.baselines import Learner


__all__ = ["DEFAULT_LEARNERS", "change", "default_learner", "default_learners", "find_learners", "named_learner"]

#: From the simplest classic to the main job, what is cheap first.
DEFAULT_LEARNERS = ("NB ML", "TAN-CMI ML", "TAN-CMI CG-CL", "TAN Subset HYB", "TAN Order-free HYB")
#: What ``fit`` takes: the last one that the size of the table allows.
_FIT_LEARNERS = ("TAN-CMI ML", "TAN-CMI CG-CL", "TAN Subset HYB")
#: By cost, to how many numbers (rows times columns) a learner is a default. Of adult, with 684,000 of them and gaps, a
#: fold of TAN-CMI ML takes 0.03 s of a processor, of TAN-CMI CG-CL 1.6, of TAN Subset and Order-free HYB 8 and 10.
_MOST_NUMBERS = {2: 10_000_000, 3: 1_000_000, 4: 1_000_000}


def find_learners(options: Sequence[str], n_numbers: int) -> list[Learner]:
    """Return the learners that options name, each once, what is cheap first; without a name, the default ones."""
    from tanlearn.baselines import LEARNERS, find_learner

    names = [name for option in options for name in map(str.strip, option.split(",")) if name]
    if "all" in map(str.lower, names):
        found = list(LEARNERS.values())
    else:
        found = list(dict.fromkeys(map(find_learner, names))) if options else default_learners(n_numbers)
    return sorted(found, key=lambda learner: learner.cost)


def default_learners(n_numbers: int) -> list[Learner]:
    """Return the default learners of a comparison."""
    from tanlearn.baselines import LEARNERS

    return [LEARNERS[name] for name in DEFAULT_LEARNERS if n_numbers <= _limit(name)]


def default_learner(n_numbers: int) -> Learner:
    """Return what ``fit`` learns with if no learner is named."""
    from tanlearn.baselines import LEARNERS

    return LEARNERS[[name for name in _FIT_LEARNERS if n_numbers <= _limit(name)][-1]]


def _limit(name: str) -> float:
    """Return to how many numbers a learner is a default."""
    from tanlearn.baselines import LEARNERS

    return _MOST_NUMBERS.get(LEARNERS[name].cost, float("inf"))


def named_learner(name: str | None, n_numbers: int) -> Learner:
    """Return the learner of a name, or that for tables of a size."""
    from tanlearn.baselines import find_learner

    return default_learner(n_numbers) if name is None else find_learner(name)


def change(estimator: Any, settings: Sequence[str]) -> Any:
    """Set parameters of an estimator."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes name=value, got {setting!r}.")
        name, known = name.strip(), estimator.get_params(deep=True)
        if name not in known:
            raise ValueError(
                f"{type(estimator).__name__} has no parameter {name!r}.{nearest(name, known)} Those that exist: "
                f"{', '.join(sorted(known))}."
            )
        estimator.set_params(**{name: _value(text.strip())})
    return estimator


def _value(text: str) -> Any:
    """Return what a text says: a number, a name of this library with its parameters, or the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return text
    except (MemoryError, RecursionError):
        raise ValueError(f"--set: the value {text[:40]}... is nested too deeply.") from None
    return _evaluated(tree, text)


def _evaluated(tree: ast.expr, text: str) -> Any:
    """Return the value of an expression of literals and objects of this library; nothing else is run."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.args:
        made = _class(tree.func.id)
        if made is not None:
            return made(**{str(keyword.arg): _evaluated(keyword.value, text) for keyword in tree.keywords})
    if isinstance(tree, ast.Name) and _class(tree.id) is not None:
        return _class(tree.id)()
    try:
        return ast.literal_eval(tree)
    except ValueError:
        return text


def _class(name: str) -> Any:
    """Return a class with parameters by its public name, or None."""
    from tanlearn import baselines

    for package in (tanlearn, baselines):
        found = getattr(package, name, None) if name in package.__all__ else None
        if isinstance(found, type) and hasattr(found, "get_params"):
            return found
    return None

"""Constructor parameters of earlier versions, accepted with a FutureWarning until version 0.4."""

from __future__ import annotations

import difflib
import inspect
from copy import copy
from typing import Any, ClassVar, Self, TypedDict

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

from tanlearn._warnings import warn
from tanlearn.files.values import register_conversion

__all__ = ["MOVED", "MOVED_OF_TAN", "DeprecatedParameters", "FormerOfForest", "FormerOfGradient", "FormerOfTAN"]

_REMOVED_IN = "0.4"
#: Former parameters of gradient classifiers, and the parameters whose settings contain the former parameters now.
MOVED = {
    **dict.fromkeys(("n_candidates", "ordering", "image_shape"), "candidates"),
    **dict.fromkeys(("learning_rate", "structure_learning_rate", "batch_size", "temperature"), "training"),
    **dict.fromkeys(("validation_fraction", "patience", "callback", "checkpoint"), "training"),
}
MOVED_OF_TAN = {**MOVED, "init": "training", "dtype": "training"}
#: Parameters for monotone columns, which are now parameters of ``Knowledge``.
_MONOTONE = ("increasing", "decreasing")
_SETTINGS = {"candidates": "Candidates", "training": "GradientTraining"}


class FormerOfGradient(TypedDict, total=False):
    """Former keywords of gradient classifiers, for type checkers."""

    n_candidates: Any
    ordering: Any
    image_shape: Any
    learning_rate: Any
    structure_learning_rate: Any
    batch_size: Any
    temperature: Any
    validation_fraction: Any
    patience: Any
    callback: Any
    checkpoint: Any


class FormerOfTAN(FormerOfGradient, total=False):
    """Former keywords of ``TANClassifier``, for type checkers."""

    init: Any
    dtype: Any


class FormerOfForest(TypedDict, total=False):
    """Former keywords of ``BayesForestClassifier``, for type checkers."""

    ridge: Any
    n_folds: Any
    device: Any


class DeprecatedParameters:
    """Mixin that supports former parameters in the constructor, in ``set_params``, as attributes and in model files.

    The mixin must precede the other base classes. Values of removed parameters are stored in attributes with an
    underscore, which the classes read instead.
    """

    #: Parameter with the settings that contain each moved parameter.
    _moved: ClassVar[dict[str, str]] = {}
    #: Constraints of each removed parameter, as in ``_parameter_constraints``.
    _removed: ClassVar[dict[str, list[Any]]] = {}

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register_conversion(cls, cls._converted)
        for name in {*cls._moved, *cls._removed} - {"device"}:  # every classifier has this attribute
            setattr(cls, name, _FormerParameter(name))
        # The signature hides **deprecated, which scikit-learn's checks and readers would mistake for a parameter.
        signature = inspect.signature(cls.__init__)
        own = [one for one in signature.parameters.values() if one.name != "self" and one.kind is not one.VAR_KEYWORD]
        cls.__signature__ = signature.replace(parameters=own)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including nested parameters such as ``encoder__n_jobs`` or ``training__learning_rate``.

        Nested parameters of ``training`` and ``candidates`` are set in copies, so that other classifiers with the same
        settings do not change.

        Parameters
        ----------
        **params : dict
            Values of the parameters.

        Returns
        -------
        object
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter is unknown.
        """
        for name in params:
            if name in _MONOTONE:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}.{self._suggestion(name)}")
        current = {name: value for name, value in params.items() if name not in (*self._moved, *self._removed)}
        former = {name: value for name, value in params.items() if name not in current}
        if former:
            moved = [f"{self._moved[name]}__{name}=..." for name in former if name in self._moved]
            self._warn(former, f"set_params({', '.join(moved)})" if moved else "")
        self._keep_removed(former)
        nested = {f"{self._moved[name]}__{name}": former[name] for name in former if name in self._moved}
        return super().set_params(**current, **nested)  # type: ignore[misc]

    def _take_former(self, given: dict[str, Any]) -> None:
        """Store deprecated keyword arguments of the constructor. Raise TypeError for unknown arguments."""
        for name in given:
            if name not in self._moved and name not in self._removed:
                raise TypeError(f"{type(self).__name__}() has no parameter {name!r}.{self._suggestion(name)}")
        if not given:
            return
        self._keep_removed(given)
        for name, value in given.items():
            self._move(name, value)
        targets = dict.fromkeys(self._moved[name] for name in given if name in self._moved)
        self._warn(given, ", ".join(f"{target}={' '.join(repr(getattr(self, target)).split())}" for target in targets))

    def _suggestion(self, name: str) -> str:
        """Return a sentence that suggests the parameter most similar to an unknown name, or an empty string."""
        if name in _MONOTONE:
            return f" Pass Knowledge({name}=[...]) as knowledge, or use BoostedTermsClassifier({name}=[...])."
        known = [*type(self)._get_param_names(), *self._moved]  # type: ignore[attr-defined]
        near = next(iter(difflib.get_close_matches(name, known, n=1)), None)
        if near is None:
            return ""
        target = self._moved.get(near)
        return f" Did you mean {f'{near}=...' if target is None else f'{target}={_SETTINGS[target]}({near}=...)'}?"

    def _move(self, name: str, value: Any) -> None:
        """Set a moved parameter in a copy of its settings. Explicit candidates have no settings."""
        if name not in self._moved:
            return
        target = self._moved[name]
        settings = self._resolve_settings(target)  # type: ignore[attr-defined]
        if isinstance(settings, BaseEstimator):
            settings = copy(settings)  # a clone would also copy the callback
            setattr(settings, name, value)
            setattr(self, target, settings)
        elif value is not None:
            raise ValueError(f"explicit lists of candidates do not use {name}, got {name}={value!r}. Leave it out.")

    def _keep_removed(self, given: dict[str, Any]) -> None:
        """Validate and store the values of removed parameters."""
        removed = {name: value for name, value in given.items() if name in self._removed}
        validate_parameter_constraints(self._removed, removed, type(self).__name__)
        vars(self).update({f"_{name}": value for name, value in removed.items()})

    def _warn(self, former: Any, spelling: str) -> None:
        """Warn that parameters are deprecated, and suggest the current spelling."""
        owner, names = type(self).__name__, ", ".join(former)
        remedy = f"Use {spelling}." if spelling else "Leave it out; the default applies."
        warn(f"deprecated in {owner}, to be removed in version {_REMOVED_IN}: {names}. {remedy}", FutureWarning)

    @classmethod
    def _converted(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return parameters of a model file, of this or an earlier version, as parameters of this version."""
        former = {name: value for name, value in parameters.items() if name in cls._moved}
        current = {name: value for name, value in parameters.items() if name not in (*former, *cls._removed)}
        if not former:
            return current
        names = cls._get_param_names()  # type: ignore[attr-defined]
        model = cls(**{name: value for name, value in current.items() if name in names})
        before = model.get_params()  # type: ignore[attr-defined]
        for name, value in former.items():
            if repr(value) != repr(before.get(f"{cls._moved[name]}__{name}")):
                model._move(name, value)
        return {**current, **{target: getattr(model, target) for target in _SETTINGS}}

    def __sklearn_clone__(self) -> Self:
        """Return a clone that keeps the values of removed parameters, which ``get_params`` does not return."""
        twin: Self = super().__sklearn_clone__()  # type: ignore[misc]
        removed = {f"_{name}" for name in self._removed}
        vars(twin).update({name: value for name, value in vars(self).items() if name in removed})
        return twin


class _FormerParameter:
    """Attribute for a former parameter, whose use issues a FutureWarning."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:
            raise AttributeError(f"{owner.__name__} has no attribute {self.name!r}.")
        if self.name in model._removed:
            model._warn([self.name], "")
            return getattr(model, f"_{self.name}")
        nested = f"{model._moved[self.name]}__{self.name}"
        value = model.get_params().get(nested)
        model._warn([self.name], f"get_params()[{nested!r}]")
        return value

    def __set__(self, model: Any, value: Any) -> None:
        model.set_params(**{self.name: value})

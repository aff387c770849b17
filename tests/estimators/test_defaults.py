"""Constructors: their defaults are those that the docstrings name, and every parameter has a rule."""

import ast
import inspect
import re

import pytest
from numpydoc.docscrape import ClassDoc
from sklearn.base import BaseEstimator

import tanlearn
import tanlearn.baselines

CLASSES = {
    name: found
    for package in (tanlearn, tanlearn.baselines)
    for name in package.__all__
    if inspect.isclass(found := getattr(package, name)) and issubclass(found, BaseEstimator)
}


def defaults_of(found):
    """Return the default of every parameter of a constructor."""
    return {own: parameter.default for own, parameter in inspect.signature(found).parameters.items()}


def documented_defaults(entry):
    """Yield name and default of the parameters of an entry such as "beta1, beta2 : float, default=0.9 and 0.999"."""
    names, found = entry.name.split(", "), re.search("default=(.*)", entry.type)
    if found:
        yield from zip(names, map(ast.literal_eval, found[1].split(" and ")), strict=True)
    else:
        yield from dict.fromkeys(names, None if "optional" in entry.type else inspect.Parameter.empty).items()


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_are_those_that_the_docstring_names(name):
    found = defaults_of(CLASSES[name])
    documented = dict(pair for entry in ClassDoc(CLASSES[name])["Parameters"] for pair in documented_defaults(entry))
    assert found == documented
    assert list(map(type, found.values())) == [type(documented[own]) for own in found]


@pytest.mark.parametrize("name", [name for name, found in CLASSES.items() if hasattr(found, "_parameter_constraints")])
def test_every_parameter_has_a_rule(name):
    assert set(CLASSES[name]._parameter_constraints) >= set(defaults_of(CLASSES[name]))


@pytest.mark.parametrize("name", [name for name in CLASSES if name.endswith("Classifier")])
def test_classifiers_have_at_most_fifteen_parameters(name):
    assert len(defaults_of(CLASSES[name])) <= 15

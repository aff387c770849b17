"""What learners and models can do is asked of ``needs`` and of their methods, never of their type or their names."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import tanlearn
from tanlearn import baselines
from tanlearn.counts.counts_base import Counts
from tanlearn.estimators.classifier import Classifier
from tanlearn.models.model import Model
from tanlearn.models.tables import Tables
from tanlearn.parameters.batch_gradient import BatchLearner

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "baselines").glob("*.py")]
for package in ("encoding", "estimators", "files", "forest", "models", "parameters", "search", "sources", "training"):
    FILES += sorted((ROOT / "tanlearn" / package).glob("*.py"))
FILES += sorted((ROOT / "tanlearn" / "exports").glob("onnx_*.py"))

#: Methods by which a learner is fitted, or by which a model is used.
METHODS = {"from_counts", "from_contexts", "from_objective", "improve", "relearn", "begin_encoded", "explain", "sample"}
#: Types are compared here, because a user's argument is validated, or because values are compared for equality.
VALIDATED = {
    ("hybrid_cv", "BatchLearner"),
    ("bif_and_xmlbif", "sample"),
}


def subclasses(base: type) -> set[str]:
    """Return the names of a class and of all its subclasses."""
    return {base.__name__}.union(*(subclasses(kind) for kind in base.__subclasses__()))


KINDS = set().union(*map(subclasses, (Counts, Model, Tables, BatchLearner)))


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes that an expression contains."""
    found = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    return found | {item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute)}


def questions(source: str) -> list[str]:
    """Return what ``hasattr`` and ``isinstance`` ask about capabilities and kinds of learners, models and counts."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or len(node.args) != 2:
            continue
        if node.func.id == "hasattr" and isinstance(node.args[1], ast.Constant):
            found += sorted({str(node.args[1].value)} & METHODS)
        if node.func.id == "isinstance":
            found += sorted(names_in(node.args[1]) & KINDS)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_no_branch_depends_on_the_kind_of_a_learner_or_a_model(path):
    asked = [name for name in questions(path.read_text(encoding="utf-8")) if (path.stem, name) not in VALIDATED]
    assert asked == []


def test_questions_are_found():
    source = "hasattr(learner, 'from_counts') or isinstance(tables, BackOffTables) or isinstance(y, np.ndarray)"
    assert questions(source) == ["from_counts", "BackOffTables"]


CLASSIFIERS = [
    kind
    for module in (tanlearn, baselines)
    for name in module.__all__
    if inspect.isclass(kind := getattr(module, name)) and issubclass(kind, Classifier)
]


@pytest.mark.parametrize("kind", CLASSIFIERS, ids=lambda kind: kind.__name__)
def test_classifiers_have_few_bases(kind):
    own = [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith("tanlearn")]
    own = [name for name in own if name != "DeprecatedParameters"]  # goes in version 0.4
    assert "Classifier" in own
    assert len(own) <= 3

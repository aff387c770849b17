"""Names and docstrings of all modules of the library."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import tanlearn
import tanlearn.baselines

PACKAGES = (tanlearn, tanlearn.baselines)


def module_names() -> list[str]:
    """Return the names of all modules, the baselines under their installed name."""
    names = set()
    for package in PACKAGES:
        names.add(package.__name__)
        names.update(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    return sorted(names)


def docstrings(module: str) -> dict[str, str]:
    """Return the docstrings of a module and of all that it defines, by qualified name."""
    found = {}

    def visit(node: ast.AST, name: str) -> None:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            found[name] = text
        for child in ast.iter_child_nodes(node):
            visit(child, f"{name}.{child.name}" if isinstance(child, ast.ClassDef | ast.FunctionDef) else name)

    visit(ast.parse(inspect.getsource(importlib.import_module(module))), module)
    return found

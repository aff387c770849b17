"""The habits of kernels, read from the source: pure loops, one place for compiler flags, a test for each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = sorted(path for path in (ROOT / "tanlearn" / "kernels").rglob("*.py") if not path.name.startswith("_"))
MODULES = sorted({*(ROOT / "tanlearn").rglob("*.py"), *(ROOT / "baselines").rglob("*.py")})
FLAG_FILE = ROOT / "tanlearn" / "kernels" / "_jit.py"
EMITTER = ROOT / "tanlearn" / "kernels" / "_lanes.py"  # hands the flags of _jit.py to the instructions that it emits

COMPILER_WORDS = {"njit", "jit", "prange", "fastmath"}
ALLOCATORS = {"array", "asarray", "copy", "empty", "full", "ones", "zeros"}
ALLOCATORS |= {f"{name}_like" for name in ("empty", "full", "ones", "zeros")}
# A dimension and what it counts ("n samples"), an array and its shape ("(n_tables + 1,)"), or "Scalars in".
LEGEND = re.compile(r"\b[A-Za-z] [a-z]+s\b|\([A-Za-z_][^()]*,[^()]*\)|\bscalars\b", re.IGNORECASE)


def name_of(path: Path) -> str:
    """Return a path relative to the project, as the identifier of a parametrised test."""
    return path.relative_to(ROOT).as_posix()


def kernels_in(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions decorated with ``@kernel`` or ``@shared_kernel``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(decorator, ast.Name) and decorator.id in ("kernel", "shared_kernel")
            for decorator in node.decorator_list
        ):
            yield node


def allocations(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Yield the calls that allocate an array inside a loop that holds no other loop."""
    for loop in ast.walk(function):
        if not isinstance(loop, ast.For | ast.While):
            continue
        inside = [node for statement in loop.body for node in ast.walk(statement)]
        if any(isinstance(node, ast.For | ast.While) for node in inside):
            continue
        for call in inside:
            if isinstance(call, ast.Call) and getattr(call.func, "attr", None) in ALLOCATORS:
                yield call


def kernel_violations(source: str) -> list[str]:
    """Return one line for each habit that the source of a kernel file breaks."""
    tree = ast.parse(source)
    problems = [
        f"line {node.lineno}: raise; the caller checks, a kernel trusts its arrays"
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
    ]
    for function in kernels_in(tree):
        arguments = function.args
        if arguments.defaults or arguments.kw_defaults or arguments.kwonlyargs:
            problems.append(f"{function.name}: keyword default; kernels take every argument by position")
        if arguments.vararg or arguments.kwarg:
            problems.append(f"{function.name}: star argument; kernels name every array")
        if not ast.get_docstring(function):
            problems.append(f"{function.name}: no docstring; name the equation it computes")
        problems += [
            f"{function.name}: line {call.lineno} allocates in an innermost loop; take a scratch array"
            for call in allocations(function)
        ]
    return problems


def has_legend(source: str) -> bool:
    """Return whether a comment above the first import or function states what the dimensions mean."""
    head = re.split(r"^(?:from|import|def|class|@)", source, maxsplit=1, flags=re.MULTILINE)[0]
    return any(LEGEND.search(line) for line in head.splitlines() if line.startswith("#"))


def compiler_words(source: str) -> list[str]:
    """Return the places that name a compiler switch, which is for ``_jit.py`` alone to do."""
    found = []
    for node in ast.walk(ast.parse(source)):
        words = []
        if isinstance(node, ast.Name):
            words = [node.id]
        elif isinstance(node, ast.Attribute):
            words = [node.attr]
        elif isinstance(node, ast.Call):
            words = [keyword.arg for keyword in node.keywords]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            words = [alias.name for alias in node.names]
        found += [f"line {node.lineno}: {word}" for word in words if word in COMPILER_WORDS]
    return found


def untested_kernels(sources: list[str], tests: list[str]) -> list[str]:
    """Return the public kernels of ``sources`` that no code (comments do not count) of ``tests`` names."""
    named = set()
    for test in tests:
        for node in ast.walk(ast.parse(test)):
            if isinstance(node, ast.Name):
                named.add(node.id)
            elif isinstance(node, ast.Attribute):
                named.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    public = {
        function.name
        for source in sources
        for function in kernels_in(ast.parse(source))
        if not function.name.startswith("_")
    }
    return sorted(public - named)


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernels_are_pure_loops(path):
    assert kernel_violations(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "path", [path for path in KERNELS if "\ndef " in path.read_text(encoding="utf-8")], ids=name_of
)
def test_kernel_file_opens_with_a_shape_legend(path):
    assert has_legend(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [path for path in MODULES if path not in (FLAG_FILE, EMITTER)], ids=name_of)
def test_compiler_switches_are_named_in_one_file_only(path):
    assert compiler_words(path.read_text(encoding="utf-8")) == []


def test_flag_file_is_where_the_compiler_switches_are():
    assert compiler_words(FLAG_FILE.read_text(encoding="utf-8")) != []


def test_every_kernel_is_named_by_a_kernel_test():
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "kernels").rglob("test_*.py")]
    assert untested_kernels([path.read_text(encoding="utf-8") for path in KERNELS], tests) == []


KERNEL = '''\
@kernel
def add(x, out):
    """Add."""
    for i in range(x.shape[0]):
        out[i] += x[i]
'''


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        ("out[i] += x[i]", "raise ValueError(x)", "raise"),
        ("(x, out)", "(x, out=None)", "keyword default"),
        ("(x, out)", "(x, *, out)", "keyword default"),
        ("(x, out)", "(*x)", "star argument"),
        ("(x, out)", "(x, **out)", "star argument"),
        ('    """Add."""\n', "", "no docstring"),
        ("out[i] += x[i]", "out[i] = np.zeros(3).sum()", "allocates"),
        ("out[i] += x[i]", "out[i] = x.copy()[i]", "allocates"),
    ],
)
def test_kernel_checker_reports_each_broken_habit(good, bad, reason):
    assert kernel_violations(KERNEL) == []
    (problem,) = kernel_violations(KERNEL.replace(good, bad))
    assert reason in problem


def test_kernel_checker_accepts_scratch_above_the_innermost_loop():
    assert kernel_violations(KERNEL.replace("    for i", "    scratch = np.empty(3)\n    for i")) == []


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("# n samples, d features, C classes\nimport numpy", True),
        ("# rho and theta (n_cells,)\nimport numpy", True),
        ("# Scalars in, scalars out.\nimport numpy", True),
        ("# flat loops\nimport numpy", False),
        ("import numpy\n# n samples", False),
        ('"""Of n samples."""\nimport numpy', False),
    ],
)
def test_legend_checker_wants_dimensions_above_the_code(head, expected):
    assert has_legend(head) is expected


@pytest.mark.parametrize(
    "source",
    [
        "from numba import njit",
        "@numba.jit\ndef f(): pass",
        "for i in numba.prange(3): pass",
        "kernel(f, fastmath=True)",
    ],
)
def test_compiler_word_checker_reports_literals(source):
    assert len(compiler_words(source)) == 1


def test_compiler_word_checker_ignores_prose():
    source = '"""njit is named in _jit."""\nfrom tanlearn.kernels._jit import kernel  # no fastmath'
    assert compiler_words(source) == []


def test_untested_checker_wants_code_and_not_comments():
    assert untested_kernels([KERNEL], ["# add\nx = 1"]) == ["add"]
    assert untested_kernels([KERNEL], ["scores.add(x, out)"]) == []
    assert untested_kernels([KERNEL], ['NAMES = ["add"]']) == []
    assert untested_kernels([KERNEL.replace("add", "_add")], [""]) == []

"""The import ranks, read from the source: a module imports strictly lower ranks or its own package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[2]

# One row per rank, lowest first; a package stands for all its modules. `__init__` is tanlearn's own: it imports the
# packages below it, and no baselines.
RANKS = (
    {
        "_clock",
        "_lazy_names",
        "_memory",
        "_plots",
        "_progress",
        "_threads",
        "_typing",
        "_version",
        "_warnings",
        "kernels",
    },
    {"_compilation", "_rank_tests", "_tasks", "sources"},
    {"encoding"},
    {"structures"},
    {"counts"},
    {"models"},
    {"files"},
    {"forest", "training"},
    {"c_export", "displays", "exports", "parameters", "terms"},
    {"estimators"},
    {"_warmup", "baselines", "privacy", "search"},
    {"density"},
    {"_public"},
    {"__init__", "checks", "comparison", "dask"},
    {"cli"},
    {"__main__"},
)
RANK = {unit: rank for rank, units in enumerate(RANKS) for unit in units}

#: Who may import the classic learners.
ABOVE_BASELINES = {"density", "comparison", "dask", "cli"}

# Importing these costs more than the whole package, so functions import them when they are called.
HEAVY = {
    "baycomp",
    "cupy",
    "cvxpy",
    "dask",
    "distributed",
    "matplotlib",
    "networkx",
    "onnx",
    "pandas",
    "polars",
    "rich",
    "scikit_posthocs",
    "scipy.optimize",
    "sklearn.model_selection",
    "typer",
}
ALLOWED_HEAVY = {"cli": {"rich", "typer"}}


def module_sources() -> dict[str, Path]:
    """Return every module by dotted name, packages as ``package.__init__``; ``rglob`` follows no links."""
    found = {}
    for package, folder in (("tanlearn", ROOT / "tanlearn"), ("tanlearn.baselines", ROOT / "baselines")):
        for path in folder.rglob("*.py"):
            found[".".join((package, *path.relative_to(folder).with_suffix("").parts))] = path
    return found


SOURCES = module_sources()


def unit_of(dotted: str) -> str:
    """Return the name under which the table lists a module: its first part below ``tanlearn``."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imported(node: ast.AST, module: str) -> list[str]:
    """Return the absolute dotted names that an import statement names, one for each name it binds."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    origin = [node.module] if node.module else []
    if node.level:
        origin = module.split(".")[: -node.level] + origin
    base = ".".join(origin)
    return [f"{base}.{alias.name}" for alias in node.names]


def tanlearn_unit(name: str, statement: ast.AST) -> str:
    """Return the unit that an import reaches; ``from tanlearn import TANClassifier`` reaches ``__init__``."""
    unit = unit_of(name)
    bound_by_init = isinstance(statement, ast.ImportFrom) and name.count(".") == 1 and unit not in RANK
    return "__init__" if bound_by_init else unit


def rank_violations(source: str, module: str) -> list[str]:
    """Return one line for each import of ``source`` that the ranks forbid, at any depth of the file."""
    own = unit_of(module)
    if own not in RANK:
        return [f"{module} has no rank: add {own!r} to RANKS in {Path(__file__).name}"]
    problems = []
    for node in ast.walk(ast.parse(source)):
        for name in imported(node, module):
            if name.split(".")[0] != "tanlearn":
                continue
            unit = tanlearn_unit(name, node)
            if unit == own and unit != "__init__":
                continue
            if unit not in RANK:
                problems.append(f"{module}:{node.lineno} imports {name}: add {unit!r} to RANKS")
            elif RANK[unit] >= RANK[own]:
                problems.append(
                    f"{module}:{node.lineno} (rank {RANK[own]}) imports {name} (rank {RANK[unit]}); "
                    f"only lower ranks may be imported"
                )
            elif unit == "baselines" and own not in ABOVE_BASELINES:
                problems.append(f"{module}:{node.lineno} imports {name}; only {sorted(ABOVE_BASELINES)} may")
    return problems


def baseline_violations(source: str, module: str) -> list[str]:
    """Return the imports by which a file of ``baselines/`` would not load under both of its names.

    Plain ``baselines`` (from the root of a checkout) has no parent package, so ``from ..x`` fails there, and
    ``tanlearn.baselines.x`` would load a second copy whose classes are not the first copy's classes.
    """
    problems = []
    for node in ast.walk(ast.parse(source)):
        names = imported(node, module)
        relative = isinstance(node, ast.ImportFrom) and node.level == 1
        absolute = isinstance(node, ast.ImportFrom) and node.level == 0
        for name in names:
            top, unit = name.split(".")[0], unit_of(name)
            inside = top == "tanlearn"
            if top == "baselines" or (inside and not (relative or (absolute and unit != "baselines"))):
                problems.append(
                    f"{module}:{node.lineno} imports {name}; write `from tanlearn.x import y` or "
                    f"`from .sibling import z`"
                )
    return problems


def eager_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the module is imported: no function bodies, no ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from eager_nodes(child)


def heavy_violations(source: str, module: str) -> list[str]:
    """Return the heavy imports that run when the module itself is imported."""
    forbidden = HEAVY - ALLOWED_HEAVY.get(unit_of(module), set())
    return [
        f"{module}:{node.lineno} imports {name} at module level; import it inside the function that needs it"
        for node in eager_nodes(ast.parse(source))
        for name in imported(node, module)
        if any(f"{name}.".startswith(f"{heavy}.") for heavy in forbidden)
    ]


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_module_imports_only_lower_ranks(module):
    assert rank_violations(SOURCES[module].read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize("module", sorted(name for name in SOURCES if unit_of(name) == "baselines"))
def test_baseline_imports_tanlearn_by_name_and_siblings_by_dot(module):
    assert baseline_violations(SOURCES[module].read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_module_imports_heavy_packages_inside_functions(module):
    assert heavy_violations(SOURCES[module].read_text(encoding="utf-8"), module) == []


def test_what_modules_take_of_each_other_is_public():
    """A function or class that another module imports stands in ``__all__``, and so its docstring is checked."""
    trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in SOURCES.items()}
    public = {
        module: ast.literal_eval(node.value)
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    }
    taken = {name for module, tree in trees.items() for node in ast.walk(tree) for name in imported(node, module)}
    owned = [(module, name) for module, _, name in (name.rpartition(".") for name in taken) if not name.isupper()]
    owned = [(module, name) for module, name in owned if name not in ("*", "__all__")]  # the package takes these
    assert len(public) > 60
    assert sorted((module, name) for module, name in owned if module in public and name not in public[module]) == []


def test_every_entry_of_the_table_exists():
    assert set(RANK) - {unit_of(module) for module in SOURCES} == set()


def test_no_entry_of_the_table_stands_in_two_rows():
    assert len(RANK) == sum(map(len, RANKS))


def test_modules_do_not_import_in_circles():
    graph = networkx.DiGraph()
    for module, path in SOURCES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in imported(node, module):
                names = (name, name.rpartition(".")[0], f"{name}.__init__", f"{name.rpartition('.')[0]}.__init__")
                graph.add_edges_from((module, found) for found in names if found in SOURCES)
    assert graph.number_of_edges() > 500
    assert list(networkx.simple_cycles(graph)) == []


def opening(unit):
    """Return the first line of a package's docstring, as Markdown."""
    dotted = "tanlearn" if unit == "__init__" else f"tanlearn.{unit}"
    source = SOURCES.get(f"{dotted}.__init__") or SOURCES[dotted]
    return ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))).splitlines()[0].replace("``", "`")


def test_contributors_read_the_same_table():
    rows = [f"| {rank} | `{unit}` | {opening(unit)} |" for rank, units in enumerate(RANKS) for unit in sorted(units)]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \d+ \| .*$", text, flags=re.MULTILINE) == rows


@pytest.mark.parametrize("room", sorted(room for room in RANK if f"tanlearn.{room}.__init__" in SOURCES))
def test_a_package_is_described_in_a_few_lines(room):
    text = ast.get_docstring(ast.parse(SOURCES[f"tanlearn.{room}.__init__"].read_text(encoding="utf-8")))
    assert re.match(r".+\.\n\n\S", text)
    assert text.count("\n") <= 5


def test_oracles_import_nothing_from_tanlearn():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests" / "oracles").glob("*.py")]
    names = {name.split(".")[0] for tree in trees for node in ast.walk(tree) for name in imported(node, "oracles.x")}
    assert {"numpy", "oracles"} <= names  # of each other they do
    assert not names & {"tanlearn", "baselines", "support"}


def test_link_inside_the_package_is_the_baselines_folder():
    link = ROOT / "tanlearn" / "baselines"
    assert link.resolve() == ROOT / "baselines"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tanlearn.kernels.scores", "from tanlearn.encoding.encoded_data import EncodedData"),
        ("tanlearn.kernels.scores", "from ..encoding.encoded_data import EncodedData"),
        ("tanlearn.kernels.scores", "from tanlearn.encoding import encoded_data"),
        ("tanlearn.kernels.scores", "from tanlearn import encoding"),
        ("tanlearn.kernels.scores", "from tanlearn import EncodedData"),
        ("tanlearn.kernels.scores", "import tanlearn"),
        ("tanlearn.kernels._jit", "from tanlearn._typing import Codes"),
        ("tanlearn.encoding.encoded_data", "def late():\n    import tanlearn.baselines.chow_liu"),
        ("tanlearn.encoding.encoded_data", "from tanlearn.baselines import ChowLiu"),
        ("tanlearn.baselines.greedy", "from tanlearn import EncodedData"),
    ],
)
def test_rank_checker_reports_forbidden_imports(module, source):
    (problem,) = rank_violations(source, module)
    assert "only lower ranks" in problem


@pytest.mark.parametrize("source", ["from tanlearn.baselines import ChowLiu", "from .baselines import ChowLiu"])
def test_rank_checker_keeps_baselines_out_of_the_package_itself(source):
    (problem,) = rank_violations(source, "tanlearn.__init__")
    assert problem.endswith("only ['cli', 'comparison', 'dask', 'density'] may")
    assert rank_violations(source, "tanlearn.comparison") == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tanlearn.novelty", "x = 1"),
        ("tanlearn.encoding.encoded_data", "from tanlearn.novelty import x"),
        ("tanlearn.encoding.encoded_data", "import tanlearn.novelty"),
    ],
)
def test_rank_checker_asks_for_unlisted_modules(module, source):
    (problem,) = rank_violations(source, module)
    assert "add 'novelty' to RANKS" in problem


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tanlearn.kernels.scores", "from tanlearn.kernels._jit import kernel\nfrom .trees import parents"),
        ("tanlearn.sources.columns", "from tanlearn import _typing\nimport numpy as np"),
        ("tanlearn.kernels.__init__", "from tanlearn.kernels import scores"),
        ("tanlearn.__init__", "from tanlearn.encoding.encoded_data import EncodedData\nfrom . import _typing"),
        (
            "tanlearn.baselines.greedy",
            "from tanlearn.kernels.scores import add\nfrom .chow_liu import ChowLiu",
        ),
    ],
)
def test_rank_checker_accepts_lower_ranks_and_siblings(module, source):
    assert rank_violations(source, module) == []


@pytest.mark.parametrize(
    "source",
    [
        "from ..encoded_data import EncodedData",
        "from .. import encoded_data",
        "from tanlearn.baselines.chow_liu import ChowLiu",
        "import tanlearn.encoding.encoded_data",
        "import baselines",
        "from baselines.chow_liu import ChowLiu",
    ],
)
def test_baseline_checker_reports_other_spellings(source):
    (problem,) = baseline_violations(source, "tanlearn.baselines.greedy")
    assert "from .sibling import z" in problem


def test_baseline_checker_accepts_the_two_spellings():
    source = "import numpy as np\nfrom tanlearn.kernels.scores import add\nfrom .chow_liu import ChowLiu"
    assert baseline_violations(source, "tanlearn.baselines.greedy") == []


@pytest.mark.parametrize(
    "source",
    [
        "import pandas as pd",
        "import matplotlib.pyplot as plt",
        "from scipy.optimize import minimize",
        "from scipy import optimize",
        "try:\n    import cupy\nexcept ImportError:\n    cupy = None",
        "class Frame:\n    import polars",
        "import typer",
    ],
)
def test_heavy_checker_reports_eager_imports(source):
    assert len(heavy_violations(source, "tanlearn.plotting")) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tanlearn.plotting", "def draw():\n    import matplotlib.pyplot as plt"),
        ("tanlearn.plotting", "if TYPE_CHECKING:\n    import networkx as nx"),
        ("tanlearn.plotting", "from scipy.special import logsumexp"),
        ("tanlearn.cli", "import rich.table\nimport typer"),
    ],
)
def test_heavy_checker_accepts_lazy_and_light_imports(module, source):
    assert heavy_violations(source, module) == []

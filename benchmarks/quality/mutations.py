"""Mutation testing: change one thing in a module, and check whether a test fails.

    python -m benchmarks.quality.mutations tanlearn/structures/structures.py --sample 60 --seed 0

Mutants exist in memory only. A first run of the module's tests, under coverage, records the lines and the seconds of
each test. Every mutant then runs in its own process, forked from one that has imported everything except this project's
modules, with kernels loaded. It runs the tests that reach the changed line, the quickest first, until one fails.
Kernels are not mutated: they have oracles and a separate coverage run.

Docstrings, annotations, ``__all__``, ``__repr__`` and the words of errors and warnings are not changed. Processes that
tests start use the original. A mutant that takes far longer than its tests counts as killed.
"""

import ast
import builtins
import contextlib
import copy
import importlib
import importlib.abc
import importlib.machinery
import io
import multiprocessing
import os
import pickle
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import coverage
import pytest

from benchmarks import ROOT, command_line

#: Modules of compiled kernels, which are never reloaded.
KEPT = ("tanlearn.kernels", "tanlearn.kernels._jit", "tanlearn.kernels._lanes", "tanlearn.kernels._cuda")
#: Tests of modules, where they are not just ``test_<module>.py``.
TESTS = {
    "acquisition": ["acquisition", "acquisition_display"],
    "ande": ["ande", "class_weights", "models", "models_damage"],
    "annealing": ["annealing", "structure_scores"],
    "aode": ["aode", "class_weights", "models", "models_damage"],
    "classifier": ["classifiers", "generation", "odd_rows", "saved_counts", "class_weights", "impossible_rows"],
    "batch_gradient": ["learners", "extended_baum_welch", "fit_batches"],
    "batches": ["batches", "fit_batches", "summaries"],
    "bayes_forest": ["bayes_forest", "forest_partial_fit", "forest_interpretation"],
    "calibration": ["calibration", "temper_evidence"],
    "candidate_kinds": ["candidate_sets"],
    "candidate_sets": ["candidate_sets", "structures"],
    "categories": ["categories", "unseen_columns", "table_encoder"],
    "chow_liu": ["chow_liu", "cuda_learning"],
    "column_encoder": ["table_encoder", "whole_numbers", "unseen_columns", "discretize", "row_checks"],
    "column_kinds": ["whole_numbers", "number_encoder", "column_summaries", "table_encoder"],
    "column_warnings": ["string_formats", "frames", "estimator_input", "discretize", "unseen_columns"],
    "columns": ["read_columns", "validation", "whole_numbers", "arrow_columns", "categories", "estimator_input"],
    "bayes_net_classifier": ["classifiers", "fit_batches", "from_counts", "partial_fit"],
    "context_tries": ["context_tables", "context_counts", "back_off"],
    "counting_classifier": ["from_counts", "fit_batches", "partial_fit", "forest_partial_fit", "saved_counts"],
    "pair_counts": ["pair_counts", "partial_fit", "chow_liu", "k_dependence", "cuda_learning", "forest_partial_fit"],
    "counts_base": ["counts_base", "partial_fit"],
    "discretize": ["discretize", "quantiles", "raw_numbers", "estimator_input", "partial_fit"],
    "elimination": [
        "log_joint",
        "objectives",
        "sampling_completion_explanation",
        "expectation_maximization",
        "quantization",
    ],
    "encoded_data": ["encoded_data", "raw_numbers", "estimator_input", "ignored_rows"],
    "estimator_input": ["estimator_input", "ignored_rows", "raw_numbers", "row_checks", "partial_fit", "weights"],
    "completion": ["sampling_completion_explanation", "generation"],
    "explanation": ["sampling_completion_explanation", "generation", "forest_interpretation"],
    "explanation_frame": ["generation", "notebook", "forest_interpretation"],
    "few_bits": ["quantization"],
    "gradient_tan": ["classifiers", "held_out_selection", "quantization", "class_weights"],
    "gradient_classifier": ["classifiers", "deprecated_parameters", "k_tree"],
    "gradient_training": ["classifiers", "deprecated_parameters"],
    "greedy": ["greedy", "structure_scores"],
    "hierarchical_dirichlet": ["hierarchical_smoothing", "learners"],
    "hybrid_cv": ["held_out_selection", "temper_evidence"],
    "log_joint": ["log_joint", "sampling_completion_explanation", "quantization", "cuda_prediction"],
    "rounded_information": ["rounded_information", "chow_liu", "k_dependence"],
    "integer_margin": ["branch_and_bound"],
    "k_dependence": ["k_dependence", "cuda_learning"],
    "learning": ["forest", "out_of_fold"],
    "maximum_likelihood": ["learners", "back_off_ridge"],
    "_memory": ["memory"],
    "n_dependence": ["ande", "ande_kernel"],
    "notation": ["notation", "table_files", "string_formats"],
    "number_encoder": ["number_encoder", "whole_numbers", "table_encoder", "read_columns"],
    "order_search": ["order_search", "structure_scores"],
    "random_tree": ["random_tree", "cuda_learning"],
    "interpretation": ["interpretation", "forest_interpretation", "generation", "k_tree", "notebook"],
    "partial_rows": ["next_feature", "acquisition"],
    "row_checks": ["row_checks", "odd_rows", "estimator_input"],
    "row_counts": ["ande"],
    "row_predictor": ["row_predictor", "impossible_rows"],
    "row_sources": ["fit_batches", "table_counts"],
    "strided_columns": ["number_encoder", "whole_numbers", "read_columns"],
    "sampling": ["sampling_completion_explanation", "generation"],
    "stochastic_gradient": ["learners", "held_out_selection"],
    "structures": ["structures", "k_dependence", "order_search", "convex_relaxation"],
    "summaries": ["summaries", "column_summaries", "fit_batches", "table_counts", "hostile_sizes"],
    "super_parent": ["super_parent", "structure_scores"],
    "table_counts": ["table_counts", "from_counts"],
    "table_encoder": ["table_encoder", "estimator_input", "categories", "unseen_columns", "row_checks"],
    "training": ["training", "checkpoint", "classifiers", "quantization", "cuda_training"],
    "validation": ["validation", "ignored_rows", "estimator_input"],
    "value_counts": ["value_counts", "value_count_kernels", "column_summaries", "summaries"],
    "value_joints": ["expected_gains"],
    "weights": ["weights", "weight_scales", "class_weights"],
}
#: Time limit of a mutant in seconds, in addition to twice the time of its tests.
PATIENCE = 15

SWAPS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitAnd,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


class Mutant(NamedTuple):
    """A change of one field of a node of the tree."""

    kind: str
    lines: range  # of the statement, up to the change
    path: tuple  # fields and indices from the module to what is replaced
    new: object
    before: str
    after: str

    @property
    def line(self):
        """Return the line of the change."""
        return self.lines[-1]


def text(node):
    """Return the source of a node in one short line."""
    found = "nothing" if node is None else " ".join(ast.unparse(node).split())
    return found if len(found) <= 90 else f"{found[:87]}..."


def changes(node):
    """Yield the kind and the new node of every change of a node."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for other in SWAPS[type(op)]:
                    new = copy.deepcopy(node)
                    new.ops[i] = other()
                    yield "comparison", new
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op):
            kind = "and, or" if isinstance(node, ast.BoolOp) else "arithmetic"
            for other in SWAPS[type(op)]:
                new = copy.deepcopy(node)
                new.op = other()
                yield kind, new
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "sign, negation", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", ast.Constant(value + 1)
            if value:
                yield "constant", ast.Constant(value - 1 if isinstance(value, int) else value / 2)
        case ast.Constant(value=str(value)):
            yield "constant", ast.Constant("XX" if value != "XX" else "")
        case ast.If() | ast.While() | ast.IfExp():
            new = copy.deepcopy(node)
            new.test = ast.UnaryOp(ast.Not(), new.test)
            yield "condition", new
        case ast.comprehension(ifs=ifs):
            for i in range(len(ifs)):
                new = copy.deepcopy(node)
                del new.ifs[i]
                yield "condition", new
        case ast.Return(value=ast.expr() as value) if not is_none(value):
            yield "return", ast.Return(ast.Constant(None))
        case ast.Call(keywords=keywords):
            for i, keyword in enumerate(keywords):
                if keyword.arg is not None:
                    new = copy.deepcopy(node)
                    del new.keywords[i]
                    yield "keyword", new
    match node:
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.AugAssign() | ast.Delete():
            yield "statement", ast.Pass()
        case (
            ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | ast.AnnAssign(target=ast.Attribute(), value=ast.expr())
        ):
            yield "statement", ast.Pass()
        case ast.Break():
            yield "statement", ast.Continue()
        case ast.Continue():
            yield "statement", ast.Pass()


def is_none(node):
    """Return whether a node is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def is_words(node):
    """Return whether a node is text for readers or for type checkers."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):  # a docstring
            return True
        case ast.FunctionDef(name="__repr__" | "__str__") | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AnnAssign(value=None):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Attribute(attr="warn") | ast.Name(id="warn")):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return isinstance(getattr(builtins, name, None), type) and issubclass(getattr(builtins, name), Exception)
        case ast.Call(func=ast.Name(id="TypeVar" | "cast") | ast.Attribute(attr="cast")):
            return True
    return False


def mutants_of(tree):
    """Return all mutants of a module's tree."""
    found = []

    def visit(node, path, statement):
        if is_words(node):
            return
        statement = node if isinstance(node, ast.stmt) else statement
        for kind, new in changes(node):
            condition = kind == "condition" and not isinstance(node, ast.comprehension)
            old, end = (node.test, node.test) if condition else (node, node)
            shown = new.test if condition else new
            last = statement if isinstance(node, ast.comprehension) else end
            lines = range(statement.lineno, max(statement.lineno, last.lineno) + 1)
            found.append(Mutant(kind, lines, path, new, text(old), text(shown)))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            if isinstance(value, list):
                for i, child in enumerate(value):
                    if isinstance(child, ast.AST):
                        visit(child, (*path, (name, i)), statement)
            elif isinstance(value, ast.AST) and not (isinstance(node, ast.JoinedStr | ast.FormattedValue)):
                visit(value, (*path, (name, None)), statement)

    for i, child in enumerate(tree.body):
        visit(child, (("body", i),), child)
    return found


def readers(tree):
    """Return the lines that read each private constant of a module, by the lines of the constant."""
    found = {}
    for statement in tree.body:
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        names = {target.id for target in targets if isinstance(target, ast.Name) and target.id.startswith("_")}
        read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
        lines = {node.lineno for node in read if isinstance(node.ctx, ast.Load)}
        found |= dict.fromkeys(range(statement.lineno, statement.end_lineno + 1) if lines else (), lines)
    return found


def mutated(tree, mutant):
    """Return the tree with one change."""
    tree = copy.deepcopy(tree)
    node = tree
    *steps, (name, i) = mutant.path
    for field, at in steps:
        node = getattr(node, field) if at is None else getattr(node, field)[at]
    old = getattr(node, name) if i is None else getattr(node, name)[i]
    new = ast.fix_missing_locations(ast.copy_location(copy.deepcopy(mutant.new), old))
    if i is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[i] = new
    return tree


class Loader(importlib.machinery.SourceFileLoader):
    """Loader of a module from a tree instead of the source in its file."""

    def __init__(self, name, path, tree):
        super().__init__(name, str(path))
        self.tree = tree

    def get_code(self, fullname):
        """Return the compiled tree."""
        return compile(self.tree, self.path, "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    """Finder of the mutated module."""

    def __init__(self, loader):
        self.loader = loader

    def find_spec(self, fullname, path, target=None):
        """Return the specification of the mutated module, or None for others."""
        if fullname == self.loader.name:
            return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)
        return None


class Plugin:
    """Plugin of pytest that selects tests, and records seconds, coverage and failures."""

    def __init__(self, seconds=None, chosen=None, recorder=None):
        self.seconds, self.chosen, self.recorder = seconds or Counter(), chosen, recorder
        self.failed = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        """Keep the chosen tests, the quickest first."""
        if self.chosen is not None:
            items[:] = sorted((item for item in items if item.nodeid in self.chosen), key=self.cost)

    def cost(self, item):
        """Return the seconds that a test took."""
        return self.seconds[item.nodeid]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Record coverage under the name of the test."""
        if self.recorder is not None:
            self.recorder.switch_context(item.nodeid)
        result = yield
        if self.recorder is not None:
            self.recorder.switch_context("")
        return result

    def pytest_runtest_logreport(self, report):
        """Remember seconds and failures."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report):
        """Remember files that cannot be imported."""
        if report.failed:
            self.failed.append(report.nodeid)


def run_tests(tests, plugin, *options):
    """Run tests in this process silently; return pytest's exit status and output."""
    options = [*options, "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:pytest_cov", "-p", "no:faulthandler"]
    options += ["-W", "ignore:Module already imported"]  # hypothesis is, so that not every mutant has to
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        status = pytest.main([*options, *map(str, tests)], plugins=[plugin])
    return status, out.getvalue()


def record(name, path, tests, target):
    """Run all tests once in a separate process, and write the records to a file."""
    path = path.resolve()  # baselines are a link
    recorder = coverage.Coverage(data_file=None, include=[str(path)], config_file=False)
    plugin = Plugin(recorder=recorder)
    recorder.start()
    status, words = run_tests(tests, plugin, "-x")
    recorder.stop()
    reached = recorder.get_data().contexts_by_lineno(str(path))
    own = tuple(str(ROOT / folder) for folder in ("tanlearn", "baselines", "tests", "benchmarks"))
    files = {found: getattr(module, "__file__", None) or own[0] for found, module in sys.modules.items()}
    loaded = [found for found, file in files.items() if not file.startswith(own)]
    kernels = {
        (module, attribute): value.signatures
        for module in list(sys.modules)
        if module.startswith("tanlearn.kernels.")
        for attribute, value in vars(sys.modules[module]).items()
        if hasattr(value, "signatures")
    }
    Path(target).write_bytes(pickle.dumps((int(status), words, plugin.seconds, reached, loaded, kernels)))


def try_mutant(name, path, tree, tests, plugin, *options_and_target):
    """Run the chosen tests on a mutant in a separate process."""
    *options, target = options_and_target
    for module in [found for found in sys.modules if found.split(".")[0] == "tanlearn" and not found.startswith(KEPT)]:
        del sys.modules[module]
    sys.meta_path.insert(0, Finder(Loader(name, path, tree)))
    status, words = run_tests(tests, plugin, *options)
    if name not in sys.modules and not plugin.failed:
        words, status = f"{name} was never imported: {words}", -1
    Path(target).write_bytes(pickle.dumps((int(status), plugin.failed, words)))
    os._exit(0)


def in_process(context, function, *arguments, seconds=None):
    """Call a function in a process; return its result, None after a crash, or "timeout"."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "result")
        process = context.Process(target=function, args=(*arguments, target))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            return "timeout"
        if process.exitcode > 0:
            raise SystemExit("That was an error of this script, and not of a mutant.")
        return pickle.loads(target.read_bytes()) if target.exists() else None


def warm_up(loaded, kernels):
    """Import the modules of the tests, except those that may be mutated, and load compiled kernels."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for name in loaded:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    for (module, attribute), signatures in kernels.items():
        for signature in signatures:
            getattr(importlib.import_module(module), attribute).compile(signature)


def choose(mutants, n, seed):
    """Return a systematic sample of mutants, sorted by kind and line, with a random start."""
    ordered = sorted(mutants, key=lambda mutant: (mutant.kind, mutant.line))
    if n is None or n >= len(ordered):
        return sorted(ordered, key=lambda mutant: mutant.line)
    step = len(ordered) / n
    start = random.Random(seed).random() * step
    return sorted((ordered[int(start + i * step)] for i in range(n)), key=lambda mutant: mutant.line)


def tests_of(module):
    """Return the files with the tests of a module."""
    found = []
    for stem in [*TESTS.get(module, [module]), "defaults"]:
        files = sorted((ROOT / "tests").rglob(f"test_{stem}.py"))
        if not files:
            raise SystemExit(f"No room has test_{stem}.py: name the tests of {module} in TESTS, or by --tests.")
        found += [path.relative_to(ROOT) for path in files]
    return found


def main():
    """Run the command."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("module", type=Path, help="a file such as tanlearn/structures/structures.py")
    parser.add_argument("--sample", type=int, help="number of mutants (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument("--lines", type=int, nargs="+", help="only mutants of these lines")
    parser.add_argument("--tests", type=Path, nargs="+", help="files of tests to run instead of the usual ones")
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    parser.add_argument("--verbose", action="store_true", help="say which tests notice a mutant")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parts = ("tanlearn", *(part for part in options.module.with_suffix("").parts if part != "tanlearn"))
    path, name = ROOT.joinpath(*parts).with_suffix(".py"), ".".join(parts)
    tests = options.tests or tests_of(parts[-1])
    tree = ast.parse(path.read_text())
    mutants = choose(mutants_of(tree), options.sample, options.seed)
    if options.lines:
        mutants = [mutant for mutant in mutants_of(tree) if mutant.line in options.lines]
    if options.list:
        for mutant in mutants:
            print(f"{path.relative_to(ROOT)}:{mutant.line} ({mutant.kind}): {mutant.before} -> {mutant.after}")
        return

    sys.path.insert(0, str(ROOT))
    context = multiprocessing.get_context("fork")
    begin = time.monotonic()
    status, words, seconds, reached, loaded, kernels = in_process(context, record, name, path, tests)
    if status != 0:
        raise SystemExit(f"The tests fail without any mutation:\n{words}")
    if not reached:
        raise SystemExit(f"No test runs a line of {path}.")
    print(f"{name}: {len(mutants)} mutants, {len(seconds)} tests in {time.monotonic() - begin:.0f} s.", flush=True)
    warm_up(loaded, kernels)
    # Without any change: tests that fail after a fork are left out.
    for test in in_process(context, try_mutant, name, path, tree, tests, Plugin())[1]:
        print(f"left out, as it fails after a fork: {test}")
        seconds.pop(test, None)

    outcomes, read, begin = Counter(), readers(tree), time.monotonic()
    for mutant in mutants:
        lines = {line for own in mutant.lines for line in read.get(own, {own})}
        contexts = {test for line in lines for test in reached.get(line, ())}
        chosen = set(seconds) if "" in contexts else contexts & set(seconds)
        files = [test for test in tests if any(one.startswith(f"{test}::") for one in chosen)]
        label = f"{path.relative_to(ROOT)}:{mutant.line} ({mutant.kind}): {mutant.before} -> {mutant.after}"
        if not chosen:
            outcomes["survived"] += 1
            print(f"SURVIVED (no test runs the line) {label}", flush=True)
            continue
        limit = PATIENCE + 2 * sum(seconds[test] for test in chosen)
        plugin = Plugin(seconds, chosen)
        found = in_process(context, try_mutant, name, path, mutated(tree, mutant), files, plugin, "-x", seconds=limit)
        if found == "timeout":
            outcomes["timed out"] += 1
            print(f"timed out after {limit:.0f} s: {label}", flush=True)
        elif found is None or found[0] in (1, 2, 3):
            outcomes["killed"] += 1
            by = "a crash" if found is None else ", ".join(found[1]) or "an error"
            if options.verbose:
                print(f"killed by {by}: {label}", flush=True)
        elif found[0] == 0:
            outcomes["survived"] += 1
            print(f"SURVIVED {len(chosen)} tests: {label}", flush=True)
        else:
            raise SystemExit(f"pytest ended with status {found[0]} on {label}:\n{found[2]}")
    caught = outcomes["killed"] + outcomes["timed out"]
    print(f"\n| module | mutants | killed | survived | timed out | caught |\n{'| --- ' * 6}|")
    row = [name, len(mutants), outcomes["killed"], outcomes["survived"], outcomes["timed out"]]
    print(f"| {' | '.join(map(str, row))} | {100 * caught / max(len(mutants), 1):.0f} % |")
    print(f"{time.monotonic() - begin:.0f} s, {(time.monotonic() - begin) / max(len(mutants), 1):.1f} s a mutant.")


if __name__ == "__main__":
    main()

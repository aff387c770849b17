"""No test reads a clock, waits for a time, or leaves a process behind: on a busy machine it would fail.

What a function may cost is counted (calls, steps, bytes). ``support.processes`` starts programs, and ends them.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
#: Modules and functions of clocks and timers.
MODULES = ("time", "timeit", "signal", "resource")
CLOCKS = {
    *("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"),
    *("process_time_ns", "thread_time", "thread_time_ns", "sleep", "timeit", "getrusage", "alarm", "setitimer"),
}
#: What is allowed, and why it cannot make a test fail.
ALLOWED = {
    ("house/test_tasks.py", "sleep"): "between two looks for a file that the test writes",
    ("support/host_cuda.py", "perf_counter"): "stands for the events of CuPy, whose times no test compares",
    ("support/processes.py", "Popen"): "ends its processes",
    ("support/processes.py", "timeout"): "reports a hang after an hour",
    ("support/processes.py", "wait"): "reports a hang after an hour",
    ("support/processes.py", "join"): "reports a hang after an hour",
}


def is_number(node):
    """Return whether an argument is a number of seconds, and not a list of strings or of tasks."""
    if isinstance(node, ast.Name):
        return node.id.isupper()
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def clocks_of(source):
    """Yield the line and the name of every clock, timer and unattended process in a program."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from ((node.lineno, name.name) for name in node.names if name.name in CLOCKS)
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS and getattr(node.value, "id", "") in MODULES:
            yield node.lineno, node.attr
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        options = {option.arg: option.value for option in node.keywords}
        if name == "Popen":
            yield node.lineno, name
        if "timeout" in options:
            yield node.lineno, "timeout"
        joins_strings = isinstance(getattr(node.func, "value", None), ast.Constant)
        if name in ("join", "wait") and not joins_strings and any(map(is_number, node.args)):
            yield node.lineno, name
        if name == "settings" and "max_examples" in options and {"deadline", "derandomize"} - set(options):
            yield node.lineno, name  # hypothesis measures examples, and draws others in every run


def test_no_test_depends_on_time():
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        for line, name in clocks_of(path.read_text(encoding="utf-8")):
            found.setdefault((path.relative_to(TESTS).as_posix(), name), line)
    assert {place: line for place, line in found.items() if place not in ALLOWED} == {}
    assert set(ALLOWED) == set(found)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time\nstart = time.time()", "time"),
        ("from time import perf_counter", "perf_counter"),
        ("import time\ntime.sleep(1)", "sleep"),
        ("subprocess.run(command, timeout=60)", "timeout"),
        ("process = subprocess.Popen(command)", "Popen"),
        ("event.wait(5)", "wait"),
        ("thread.join(PATIENCE)", "join"),
        ("@settings(max_examples=3, deadline=None)\ndef test(): pass", "settings"),
    ],
)
def test_a_clock_is_found(source, name):
    assert [found for _, found in clocks_of(source)] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "monkeypatch.setattr(module.time, 'monotonic', now.__next__)",
        "thread.join()",
        "', '.join(names)",
        "''.join(ROWS)",
        "distributed.wait(rows)",
        "settings(deadline=None, derandomize=True)",
    ],
)
def test_a_replaced_clock_and_an_event_are_no_clocks(source):
    assert [*clocks_of(source)] == []

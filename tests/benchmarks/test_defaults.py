"""What is said of the defaults of gradient TAN is what quality/defaults.md shows, and the command counts it."""

import re

import numpy as np

from benchmarks import ROOT
from benchmarks.quality import defaults
from tanlearn import TANClassifier

REPORT = (ROOT / "benchmarks" / "quality" / "defaults.md").read_text(encoding="utf-8")


def test_verdict_counts_sets_and_compares_means():
    columns = list(defaults.MODELS)
    rows = np.full((3, len(columns)), 20.0)
    rows[:, columns.index("subset")] = [19.0, 19.9, 23.0]  # better on two sets, worse on average
    rows[:, columns.index("order-free")] = [21.0, 21.0, 10.0]  # worse on two, better on average
    text = defaults.verdict(rows, rows.mean(axis=0))
    assert "- TAN-CMI HYB: less on 0 of 3 sets, and more on average (20.00 against 20.00 %)" in text
    assert "- subset: less on 2 of 3 sets, and more on average (20.63 against 20.00 %)" in text
    assert "- order-free: less on 1 of 3 sets, and less on average (17.33 against 20.00 %)" in text
    assert "TAN-CMI ML:" not in text  # has no protocol of its own


def test_report_says_what_its_table_shows():
    found = re.findall(r"^\| (\S+) \| ([\d. |]+) \|$", REPORT, flags=re.MULTILINE)
    *rows, mean = [[float(error) for error in cells.split(" | ")] for _, cells in found]
    assert len(rows) == 10
    assert REPORT.endswith(f"|\n\n{defaults.verdict(rows, mean)}\n")


def test_docstring_has_the_figures_of_the_report():
    text = " ".join(TANClassifier.__doc__.split())
    for name in ("subset", "order-free"):
        n_better, ours, published = re.search(
            rf"^- {name}: less on (\d+) of 10 sets, and \w+ on average \(([\d.]+) against ([\d.]+) %\)$",
            REPORT,
            flags=re.MULTILINE,
        ).groups()
        assert re.search(rf'"{name}"``[^(]* on {n_better} [^(]*\({ours} against {published} %\)', text)

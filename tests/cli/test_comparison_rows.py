"""Rows of ``tanlearn compare`` as text, JSON, CSV and Markdown."""

import csv
import json
from dataclasses import replace

import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

from tanlearn.cli.comparison_rows import HEADERS, as_csv, as_json, as_markdown, cells, lowest, summary
from tanlearn.comparison import MeanResult

GOOD = MeanResult("digits", "NB ML", 1, 1198, 599, 10.515, None, 0.7184, 1189, 0.031, 1.24)
BETTER = MeanResult("digits", "NB HYB", 5, 1198, 599, 9.0, 0.5, 0.25, 1189, 3.0, 1.0)
FAILED = MeanResult("digits", "TAN All HYB", 1, 1198, 599, failure="too much | too late")


def test_best_are_all_of_equal_error():
    equal = replace(GOOD, learner="NB CG-CL")
    assert lowest([GOOD, FAILED, equal]) == [GOOD, equal]
    assert lowest([FAILED]) == []


def test_summary_says_how_it_was_measured():
    assert summary([GOOD, FAILED]) == (
        "Lowest error: NB ML, 10.52 % of 599 held-out rows wrong (standard error 1.25), trained on 1,198."
    )
    assert summary([GOOD]).startswith("Error of NB ML: 10.52 % of 599 held-out rows wrong")
    assert summary([BETTER, FAILED]) == (
        "Lowest error: NB HYB, 9.00 % of the test rows wrong, mean of 5 folds (standard deviation 0.50)."
    )
    assert "NB ML and NB CG-CL" in summary([GOOD, replace(GOOD, learner="NB CG-CL")])
    assert summary([FAILED]) == "No learner succeeded."


def test_summary_of_a_perfect_learner_has_no_error():
    assert "0.00 % of 599 held-out rows wrong (standard error 0.00)" in summary([replace(GOOD, test_error=0.0)])


def test_cells_stand_under_their_headers():
    assert [len(cells(result)) for result in (GOOD, BETTER, FAILED)] == [len(HEADERS)] * 3
    assert cells(BETTER) == ("NB HYB", "9.00 ± 0.50", "0.250", "1,189", "3.00", "1.0")
    assert cells(FAILED) == ("TAN All HYB", "failed", "", "", "", "")


def test_json_holds_every_field_and_null():
    good, failed = json.loads(as_json([GOOD, FAILED]))
    assert MeanResult(**good) == GOOD
    assert MeanResult(**failed) == FAILED
    assert failed["test_error"] is None


def test_csv_has_a_line_a_learner_under_the_names():
    good, failed = csv.DictReader(as_csv([GOOD, FAILED]).splitlines())
    assert (good["learner"], float(good["test_error"]), good["test_error_std"]) == ("NB ML", 10.515, "")
    assert (failed["test_error"], failed["failure"]) == ("", "too much | too late")


def test_markdown_has_failures_below_and_bold_by_the_test():
    assert as_markdown([GOOD, BETTER, FAILED], {"digits": ["NB HYB"]}).splitlines() == [
        "| learner     |  test error [%] | log loss | parameters | fit [s] | predict [us/row] |",
        "| ----------- | --------------: | -------: | ---------: | ------: | ---------------: |",
        "| NB ML       |           10.52 |    0.718 |      1,189 |    0.03 |              1.2 |",
        "| NB HYB      | **9.00 ± 0.50** |    0.250 |      1,189 |    3.00 |              1.0 |",
        "| TAN All HYB |          failed |          |            |         |                  |",
        "",
        "TAN All HYB failed: too much | too late",
    ]

"""Reports: tables of means and tests, in aligned Markdown."""

from dataclasses import replace

import numpy as np
import pytest

from tanlearn.comparison import CellResult, Comparison
from tanlearn.comparison import statistics as statistics_module
from tanlearn.comparison.report import markdown_table


def cell(dataset, learner, fold, **outcome):
    """Return a cell with given measures."""
    identity = {"data_id": dataset, "learner_id": learner, "settings": "", "versions": "tanlearn 1"}
    return CellResult(
        dataset=dataset, learner=learner, repeat=1, fold=fold, n_train=80, n_test=20, n_folds=5, seed=0,
        **identity, **outcome,
    )  # fmt: skip


@pytest.fixture
def comparison():
    """Return errors on two data sets: A and B are alike, C is worse, and D fails in one fold."""
    rng = np.random.default_rng(0)
    cells = []
    for dataset in ("one", "two"):
        for learner, error in {"A": 10.0, "B": 10.2, "C": 30.0, "D": 10.0}.items():
            outcomes = [{"error": error + rng.normal(), "fit_seconds": 1.0, "n_parameters": 7} for _ in range(5)]
            cells += [cell(dataset, learner, fold, **outcome) for fold, outcome in enumerate(outcomes, start=1)]
    broken = next(i for i, one in enumerate(cells) if (one.dataset, one.learner, one.fold) == ("two", "D", 3))
    cells[broken] = cell("two", "D", 3, failure="no | luck")
    return Comparison(cells)


def rows(report, heading):
    """Return the fields of the table under a heading, by its first column(s)."""
    section = report.split(f"## {heading}")[1].split("\n\n")[1]
    return [[field.strip() for field in line.strip("|").split(" | ")] for line in section.splitlines()[2:]]


def test_bold_means_are_those_of_the_test(comparison):
    report = comparison.report()
    found = {row[0]: row[2:] for row in rows(report, "Test error [%]")}
    best = comparison.best()
    assert {name: sorted(own) for name, own in best.items()} == {"one": ["A", "B", "D"], "two": ["A", "B"]}
    for name in ("one", "two"):
        for learner, field in zip("ABCD", found[name], strict=True):
            if (name, learner) == ("two", "D"):
                assert field == "(4 of 5)"
                continue
            values = comparison.values(name)["ABCD".index(learner)]
            text = f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
            assert field == (f"**{text}**" if learner in best[name] else text)
    assert found["mean"][3] == ""
    assert "In parentheses: number of splits with a result" in report
    assert "- two, D (1): no | luck" in report


def test_tests_are_those_of_the_comparison(comparison):
    report = comparison.report(reference="A")
    found = rows(report, "Differences to A on single data sets")
    tests = comparison.paired("A")
    assert [(row[0], row[1]) for row in found] == [(test.dataset, test.first) for test in tests]
    assert [row[2] for row in found] == [f"{test.difference:+.2f}" for test in tests]
    verdicts = {(row[0], row[1]): row[-1] for row in found}
    assert verdicts["one", "B"] == "not significant"
    assert verdicts["one", "C"] == "worse"
    upward = {(row[0], row[1]): row[-1] for row in rows(comparison.report(reference="C"), "Differences")}
    assert (upward["one", "A"], upward["two", "B"]) == ("better", "better")


def test_scores_are_better_if_larger():
    values = {"A": [0.501, 0.502, 0.503], "B": [0.6, 0.6, 0.6]}
    cells = [cell("one", name, k, auc=auc) for name, own in values.items() for k, auc in enumerate(own, start=1)]
    (row,) = rows(Comparison(cells).report("auc", reference="A"), "Differences")
    assert (row[1], row[-1]) == ("B", "better")
    (row,) = rows(Comparison(cells).report("auc"), "Differences")
    assert (row[1], row[-1]) == ("A", "worse")


def test_all_data_sets_are_summarized(comparison):
    pytest.importorskip("baycomp", reason="needs tanlearn[compare]")
    complete = Comparison([one for one in comparison.cells if one.learner != "D"])
    report = complete.report(reference="A")
    found = {row[0]: row[1:] for row in rows(report, "All data sets")}
    ranks = complete.ranks()
    assert {name: row[0] for name, row in found.items()} == {
        name: f"{rank:.2f}" for name, rank in zip("ABC", ranks.mean_ranks, strict=True)
    }
    assert found["C"][1] == "0/0/2"
    assert [float(part) for part in found["C"][-3:]] == pytest.approx([0, 0, 1], abs=0.2)
    assert f"Critical difference (Nemenyi, level 0.05): {ranks.critical_difference:.2f}." in report
    assert "With 2 data sets, the signed ranks cannot be significant at 5 %; it takes 6." in report


def test_without_baycomp_the_other_tests_remain(comparison, monkeypatch):
    def absent(module, what):
        raise ImportError(f"{what} needs {module}. Install it")

    monkeypatch.setattr(statistics_module, "require", absent)
    report = comparison.report()
    assert "The Bayesian signed-ranks test needs baycomp. Install it." in report
    assert "P(better)" not in report
    assert "win/tie/loss" in report


def test_a_single_split_has_no_test_and_no_bold(comparison):
    report = Comparison([one for one in comparison.cells if one.fold == 1]).report()
    assert "**" not in report
    assert "A data set with a single split has no test and no bold." in report
    assert "There is no test: each data set has a single split." in report


def test_the_reason_is_given_if_there_is_no_test():
    a = [cell("one", "A", fold, error=10.0 + fold) for fold in (1, 2, 3)]
    failed = [cell("one", "B", fold, failure="no luck") for fold in (1, 2, 3)]
    report = Comparison([*failed, *a]).report()
    assert "There is no test: no other learner has the test error in two splits in which A has it." in report
    assert "single split" not in report
    assert "(0 of 3)" in report
    report = Comparison([*failed, *a]).report(reference="B")
    assert "There is no test: B has no test error on any data set." in report


def test_a_learner_without_probabilities_has_not_failed():
    cells = [cell("one", "A", fold, error=10.0, log_loss=0.1 * fold) for fold in (1, 2, 3)]
    report = Comparison([*cells, *(cell("one", "B", fold, error=10.0) for fold in (1, 2, 3))]).report("log_loss")
    assert rows(report, "Log loss")[0][-1] == "none"
    assert "none: the learner has run, but has no log loss." in report
    assert "has failed or is not finished" not in report


def test_many_tests_are_only_counted(comparison):
    cells = [replace(one, dataset=f"{one.dataset} {i}") for i in range(20) for one in comparison.cells]
    assert "There are 120 tests; `Comparison.paired('A')` returns them." in Comparison(cells).report(reference="A")


def test_costs_are_means_over_data_sets():
    seconds = {("one", 1): 1.0, ("one", 2): 3.0, ("two", 1): 8.0}
    cells = [cell(dataset, "A", fold, fit_seconds=own) for (dataset, fold), own in seconds.items()]
    ((name, mean, *others),) = rows(Comparison(cells).report(), "Costs")
    assert (name, mean, set(others)) == ("A", "5.00", {""})


def test_an_empty_comparison_has_no_report():
    with pytest.raises(ValueError, match=r"there is no finished cell, and so no report\. Run the comparison first"):
        Comparison([]).report()


def test_tables_are_aligned_and_escaped():
    assert markdown_table(["a", "number"], [["x|y", "1"], ["z", "23"]]).splitlines() == [
        "| a    | number |",
        "| ---- | -----: |",
        "| x\\|y |      1 |",
        "| z    |     23 |",
    ]

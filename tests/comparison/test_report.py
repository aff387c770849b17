"""Reports: tables of means and tests, in aligned Markdown, in LaTeX and as comma-separated values."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from tanlearn.comparison import CellResult, Comparison
from tanlearn.comparison import statistics as statistics_module
from tanlearn.comparison.report_formats import ReportTable, Section, as_latex, as_markdown, markdown_table


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
    assert "mean" not in found  # all learners are complete on a single data set only
    assert "In parentheses: number of folds with a result" in report
    assert "- two, D (1 fold): no | luck" in report


def test_tests_are_those_of_the_comparison(comparison):
    report = comparison.report(reference="A")
    found = rows(report, "Differences to A on single data sets")
    tests = comparison.paired("A")
    labels = [(test.dataset, test.first) for test in tests]
    labels[labels.index(("two", "D"))] = ("two", "D (4 of 5 folds)")
    assert [(row[0], row[1]) for row in found] == labels
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


def six_data_sets(comparison):
    """Return the complete learners on three copies of both data sets."""
    kept = [one for one in comparison.cells if one.learner != "D"]
    return Comparison([replace(one, dataset=f"{one.dataset} {i}") for i in range(3) for one in kept])


def test_wins_and_verdicts_have_the_same_p_values():
    rng = np.random.default_rng(0)
    found = set()
    for gap in np.linspace(0.3, 2.0, 12):
        of = {"A": np.zeros(6), "B": rng.normal(gap, 0.7, 6), "C": rng.normal(gap, 0.7, 6)}
        cells = [cell("one", name, k, error=10 + v) for name, own in of.items() for k, v in enumerate(own, start=1)]
        comparison = Comparison([*cells, *(replace(one, dataset="two") for one in cells)])
        counts = {row[0]: row[2] for row in rows(comparison.report(reference="A"), "All data sets")}
        for row in rows(comparison.report(reference="A"), "Differences")[:2]:
            assert counts[row[1]] == {"worse": "0/0/2", "better": "2/0/0", "not significant": "0/2/0"}[row[-1]]
            found.add((float(row[4].strip("< ")) < 0.05, row[-1]))
    assert (True, "not significant") in found  # significant before the correction only
    assert (True, "worse") in found


def test_incomplete_learners_are_marked_and_not_averaged(comparison):
    third = [replace(one, dataset="three") for one in comparison.cells if one.dataset == "one"]
    slow = [replace(one, fit_seconds=100.0) if one.dataset == "two" and one.error else one for one in comparison.cells]
    failing = [cell("two", "E", fold, failure="no luck") for fold in range(1, 6)]
    whole = Comparison([*slow, *third, *failing])
    report = whole.report(reference="A")
    assert [row[1] for row in rows(report, "Differences") if row[0] == "two"] == ["B", "C", "D (4 of 5 folds)"]
    means = {row[0]: row[2:] for row in rows(report, "Test error [%]")}
    expected = [(whole.mean()[0, j] + whole.mean()[2, j]) / 2 for j in range(4)]
    assert means["mean of 2"] == [*(f"{mean:.2f}" for mean in expected), ""]
    costs = {row[0]: row[1:3] for row in rows(report, "Costs")}
    assert costs == {**{name: ["2", "1.00"] for name in "ABCD"}, "E": ["0", ""]}
    assert "Means over the 2 data sets on which all learners with results are complete" in report
    ranked = {row[0]: row[1:4] for row in rows(report, "All data sets")}
    assert (ranked["D"][2], ranked["B"][2], ranked["E"]) == ("2", "3", ["", "", ""])
    assert "Mean ranks over 2 data sets, without two." in report
    assert "Not ranked, without a complete data set: E." in report


def test_all_data_sets_are_summarized(comparison):
    pytest.importorskip("baycomp", reason="needs tanlearn[compare]")
    complete = six_data_sets(comparison)
    report = complete.report(reference="A")
    found = {row[0]: row[1:] for row in rows(report, "All data sets")}
    ranks = complete.ranks()
    assert {name: row[0] for name, row in found.items()} == {
        name: f"{rank:.2f}" for name, rank in zip("ABC", ranks.mean_ranks, strict=True)
    }
    assert found["C"][1:3] == ["0/0/6", "6"]
    assert "| P(better than A) | P(within 1) | P(worse than A) |" in report
    assert [float(part) for part in found["C"][-3:]] == pytest.approx([0, 0, 1], abs=0.2)
    assert f"Critical difference (Nemenyi, level 0.05): {ranks.critical_difference:.2f}." in report
    assert "Bayesian test is left out" not in report
    few = Comparison([one for one in complete.cells if one.dataset != "one 2"]).report(reference="A")
    assert "P(" not in few
    assert (
        "With 5 data sets, the signed-ranks test cannot be significant at 5 %, and the Bayesian test is left out."
        in few
    )


def test_without_baycomp_the_other_tests_remain(comparison, monkeypatch):
    def absent(module, what):
        raise ImportError(f"{what} needs {module}. Install it")

    monkeypatch.setattr(statistics_module, "require", absent)
    report = six_data_sets(comparison).report()
    assert "The Bayesian signed-ranks test needs baycomp. Install it." in report
    assert "P(better)" not in report
    assert "win/tie/loss" in report


def test_a_single_split_has_no_test_and_no_bold(comparison):
    report = Comparison([one for one in comparison.cells if one.fold == 1]).report()
    assert "**" not in report
    assert "A data set with a single split has no test and no bold." in report
    assert "There are no tests: each data set has a single split." in report


def test_the_reason_is_given_if_there_is_no_test():
    a = [cell("one", "A", fold, error=10.0 + fold) for fold in (1, 2, 3)]
    failed = [cell("one", "B", fold, failure="no luck") for fold in (1, 2, 3)]
    report = Comparison([*failed, *a]).report()
    assert "There are no tests: no other learner has the test error in two folds in which A has it." in report
    assert "single split" not in report
    assert "(0 of 3)" in report
    report = Comparison([*failed, *a]).report(reference="B")
    assert "There are no tests: B has no test error on any data set." in report


def test_a_learner_without_probabilities_has_not_failed():
    cells = [cell("one", "A", fold, error=10.0, log_loss=0.1 * fold) for fold in (1, 2, 3)]
    report = Comparison([*cells, *(cell("one", "B", fold, error=10.0) for fold in (1, 2, 3))]).report("log_loss")
    assert rows(report, "Log loss")[0][-1] == "none"
    assert "none: the learner has run, but has no log loss." in report
    assert "has failed or is not finished" not in report


def test_many_tests_are_only_counted(comparison):
    cells = [replace(one, dataset=f"{one.dataset} {i}") for i in range(20) for one in comparison.cells]
    report = Comparison(cells).report(reference="A")
    assert "There are 120 tests. `tanlearn report --print csv` prints them, and `Comparison.paired('A')`" in report


def test_costs_are_means_over_data_sets():
    seconds = {("one", 1): 1.0, ("one", 2): 3.0, ("two", 1): 8.0}
    cells = [cell(dataset, "A", fold, fit_seconds=own) for (dataset, fold), own in seconds.items()]
    cells = [replace(one, predict_seconds=2e-4) for one in cells]
    report = Comparison(cells).report("fit_seconds")
    ((name, mean, predict, *others),) = rows(report, "Costs")
    assert (name, mean, predict, set(others)) == ("A", "5.00", "10.0", {""})
    assert "predict [us/row]" in report
    assert "**" not in report  # a single learner has no test


def test_an_empty_comparison_has_no_report():
    with pytest.raises(
        ValueError, match=r"a report needs finished cells, but there are none\. Run the comparison first"
    ):
        Comparison([]).report()


def test_tables_are_aligned_and_escaped():
    assert markdown_table(["a", "number"], [["x|y", "1"], ["z", "23"]]).splitlines() == [
        "| a    | number |",
        "| ---- | -----: |",
        "| x\\|y |      1 |",
        "| z    |     23 |",
    ]


def test_comma_separated_values_are_means_and_tests(comparison):
    header, *found = csv.reader(comparison.report(reference="A", format="csv").splitlines())
    lines = {(line[0], line[1]): dict(zip(header, line, strict=True)) for line in found}
    assert len(found) == len(lines) == 8
    tests = {(test.dataset, test.first): test for test in comparison.paired("A")}
    for (dataset, learner), line in lines.items():
        values = comparison.values(dataset)["ABCD".index(learner)]
        own = values[~np.isnan(values)]
        assert (line["measure"], line["reference"], int(line["n_folds"])) == ("error", "A", len(own))
        assert float(line["mean"]) == pytest.approx(own.mean())
        assert float(line["std"]) == pytest.approx(own.std(ddof=1))
        assert line["is_best"] == str(int(learner in comparison.best()[dataset]))
        if learner == "A":
            assert (line["difference"], line["p_value"]) == ("", "")
            continue
        test = tests[dataset, learner]
        assert float(line["difference"]) == test.difference
        assert [float(line[name]) for name in ("low", "high", "p_value", "p_holm")] == [
            test.low, test.high, test.p_value, test.p_holm
        ]  # fmt: skip


def test_latex_has_the_tables_of_the_report(comparison):
    text = comparison.report(reference="A", format="latex")
    plain = rows(comparison.report(reference="A"), "Test error [%]")
    lines = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if line.endswith(r" \\")]
    assert lines[0] == ["data set", "rows", "A", "B", "C", "D"]
    bold = [field.replace("±", r"$\pm$") for field in plain[0]]
    assert lines[1] == [f"\\textbf{{{field.strip('*')}}}" if field.startswith("**") else field for field in bold]
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == comparison.report().count("\n| ---")
    assert r"\caption{Test error [\%]. Bold: not significantly worse" in text
    assert r"\item two, D (1 fold): no \textbar{} luck" in text


def test_sections_are_escaped_and_ordered():
    table = ReportTable(["a_b", "p"], [["**1**", "< 0.5"], ["x-1", "-2 to -1"]])
    sections = [Section("Title", text="50 % & more", level=1), Section("Part", table, "See `f(x)`.", ["an {item}"])]
    assert as_markdown(sections) == (
        "# Title\n\n50 % & more\n\n## Part\n\n"
        "| a_b   |        p |\n| ----- | -------: |\n| **1** |    < 0.5 |\n| x-1   | -2 to -1 |\n\n"
        "See `f(x)`.\n\n- an {item}\n"
    )
    text = as_latex(sections)
    assert "\\section*{Title}\n50 \\% \\& more\n" in text
    assert "a\\_b & p \\\\\n\\midrule\n\\textbf{1} & $<$ 0.5 \\\\\nx-1 & $-$2 to $-$1 \\\\\n" in text
    assert "\\caption{Part. See \\texttt{f(x)}.}" in text
    assert "\\begin{tabular}{lr}" in text


def test_an_unknown_format_is_refused(comparison):
    with pytest.raises(ValueError, match="format must be one of 'markdown', 'latex', 'csv', got 'html'"):
        comparison.report(format="html")


def test_a_single_split_has_no_test_for_a_reason():
    cells = [replace(cell("one", name, 1, error=error), n_folds=1) for name, error in (("A", 10.0), ("B", 12.0))]
    report = Comparison(cells).report()
    assert "1 repeat of 1 split." in report
    assert "McNemar's test of a single split needs predictions of single rows, which are not stored" in report

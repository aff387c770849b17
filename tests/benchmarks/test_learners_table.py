"""The table of learners: what a cell says, what is bold, and when it is written."""

import numpy as np
import pytest

from benchmarks.quality import learners_table, runs
from benchmarks.quality.learners_table import BEGIN, CONVEX, END, GAPS, SETS
from benchmarks.quality.outcomes import outcomes
from benchmarks.shared.results import append
from tanlearn.baselines import LEARNERS


def line(name, learner, wrong, **more):
    """Return a line of results: the first ``wrong`` of 100 test rows are wrong."""
    flags = np.arange(100) < wrong
    sizes = {"n_folds": 1, "n_train": 900, "n_test": 100}
    measured = {"log_loss": 0.25, "seconds": 2.0, "bins": [[0] * 10] * 3, "wrong": runs.packed(flags)}
    start = {"set": name, "fold": 1, "learner": learner, "versions": "tanlearn 1 abc, numpy 2"}
    return start | sizes | measured | more


@pytest.fixture
def lines():
    """Return a line of every learner and set: AODE is the best, and one learner asks for complete rows."""
    wrong = {"AODE": 4, "NB ML": 20}
    found = [line(name, learner, wrong.get(learner, 10)) for name in SETS for learner in learners_table.learners(name)]
    for one in found:
        if one["set"] == GAPS and one["learner"] == "TAN-CR ML":
            one["failure"] = "Complete rows only. Impute."
    return found


def test_table_has_a_row_a_learner_and_the_lowest_errors_in_bold(lines):
    lines[0]["seconds"] = 12.0  # naive Bayes on the first set, and 2 on the others
    header, rule, *rows = learners_table.table(outcomes(lines)).splitlines()
    assert header.startswith("| learner | method | references | segment<br>numbers<br>± 1.96 | car<br>")
    assert rule.count("---:") == len(SETS) + 1
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in LEARNERS]
    by_name = dict(zip(LEARNERS, rows, strict=True))
    assert by_name["NB ML"].endswith(f"{'| 20.00 / 0.250 ' * len(SETS)}| 4.00 |")
    assert by_name["AODE"].endswith(f"{'| **4.00** / 0.250 ' * len(SETS)}| 2.00 |")
    assert by_name["TAN-CR ML"].endswith("| 10.00 / 0.250 | - | 2.00 |")
    assert by_name[CONVEX].endswith("| 10.00 / 0.250 | - | 10.00 / 0.250 | 2.00 |")


def test_explanation_names_what_fails_where_nothing_is_missing(lines):
    said = learners_table.explanation(lines, outcomes(lines)).replace("\n", " ")
    assert "segment (1,000), car (1,000)" in said
    assert "or fails.  All learners" in said
    lines[3]["failure"] = "Not solved: no; got 3. Try another."
    said = learners_table.explanation(lines, outcomes(lines)).replace("\n", " ")
    assert f"or fails:  - {lines[3]['learner']} on segment (Not solved: no).  All learners" in said


def test_page_is_written_when_all_is_finished(lines, tmp_path):
    page, results = tmp_path / "table.md", tmp_path / "results"
    results.mkdir()
    page.write_text(f"before\n{BEGIN}earlier table\n{END}after\n", encoding="utf-8")
    asked = ["report", "--results", str(results), "--output", str(tmp_path)]
    for one in lines[:-1]:
        append(results / "learners_table.jsonl", one)
    with pytest.raises(SystemExit, match=rf"not finished: {lines[-1]['learner']} on crx\. "):
        learners_table.main(asked)
    assert "earlier table" in page.read_text(encoding="utf-8")
    append(results / "learners_table.jsonl", lines[-1])
    learners_table.main(asked)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}| learner |")
    assert text.endswith(f"</details>\n{END}after\n")
    assert "earlier table" not in text


def test_text_without_markers_is_refused():
    with pytest.raises(ValueError, match="must hold the lines"):
        learners_table.with_table("no markers", "new\n")


def test_command_runs_every_learner_of_a_set_once(tmp_path, monkeypatch, capsys):
    y = np.arange(60) % 2
    (tmp_path / "raw").mkdir()
    np.savez(tmp_path / "raw" / "car.npz", X=np.stack([y, y // 2], axis=1), y=y)
    few = {name: LEARNERS[name] for name in ("NB ML", "AODE")}
    monkeypatch.setattr(learners_table, "LEARNERS", few)
    asked = ["run", "--sets", "car", "--data", str(tmp_path), "--results", str(tmp_path / "results")]
    learners_table.main(asked)
    assert len(capsys.readouterr().out.splitlines()) == 10
    learners_table.main(asked)
    assert capsys.readouterr().out == ""

"""Unusual tables have the shapes of their names, and the report names what was stopped or left out."""

import re

import numpy as np
import pytest
from support.results_files import write

from benchmarks.speed import large_tables as benchmark

FIRST, SECOND = list(benchmark.TABLES)[:2]
FOREST = "the forest has 4 instead of 32 networks. The limit is 1.0 GiB."


def line(table, learner, **measured):
    return {"table": table, "learner": learner, "versions": "tanlearn 1, numpy 2", **measured}


def test_report_names_stopped_fits_extremes_and_what_was_left_out(tmp_path):
    fast = {"predict": 0.1, "error": 12.0, "log_loss": 0.5}
    lines = [
        line(FIRST, "NaiveBayes", fit=1.0, peak=900.0, notes=["another warning"], **fast),
        line(FIRST, "BayesForest", fit=20.0, peak=400.0, notes=["another warning", FOREST], **fast),
        line(FIRST, "RandomForest", fit=99.0, peak=9000.0, notes=[], **fast),
        line(SECOND, "TAN", stopped="stopped after 120 s"),
    ]
    write(tmp_path / benchmark.FILE, lines)
    benchmark.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
    text = (tmp_path / "large_tables.md").read_text(encoding="utf-8")
    sentences = " ".join(text.split())
    assert (
        f"Not finished: TAN ({SECOND}). Of the other fits, except RandomForest, BayesForest takes longest, 20 s for "
        f"the table of {FIRST}. "
        f"NaiveBayes takes most memory, 900 MiB for the table of {FIRST}."
    ) in sentences
    assert "| BayesForest | 20.0 | 0.10 | 400 | 12.0 | 0.500 |" in text
    assert "| TAN |  |  |  |  |  |" in text
    assert "- TAN: stopped after 120 s" in text
    assert f"- BayesForest: {FOREST}" in text
    assert "another warning" not in text
    assert "Not measured: TAN, KTree, TermNet, BoostedTerms, BayesEnsemble." in text


@pytest.mark.parametrize("name", list(benchmark.TABLES))
def test_tables_have_the_rows_of_their_names(name, monkeypatch):
    monkeypatch.setattr(benchmark, "N_TEST", 0)
    X, y = benchmark.TABLES[name](np.random.default_rng(0))
    assert len(X) == len(y) == int(re.match("[0-9,]+", name)[0].replace(",", ""))
    columns = re.search("([0-9,]+) columns? of|([0-9,]+) columns$", name)
    n_columns = int((columns[1] or columns[2]).replace(",", "")) if columns else 0
    assert X.shape[1] >= n_columns

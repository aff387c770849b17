"""The comparison of hill climbing with other libraries: independent scores, the same work, and the report."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
from oracles import family_scores as naive

from benchmarks.peers import climbing


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a raw set in which every feature depends on the one before."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, 300)]
    for _ in range(4):
        columns.append(np.where(rng.random(300) < 0.6, columns[-1], rng.integers(0, 3, 300)))
    (tmp_path / "raw").mkdir()
    np.savez(tmp_path / "raw" / "tiny.npz", X=np.stack(columns[1:], axis=1) * 2, y=columns[0])
    return tmp_path


def measured(folder, *options):
    """Return the rows of the results."""
    climbing.main(["--data", str(folder), "--output", str(folder), "--repeats", "1", "--sets", "tiny", *options])
    return json.loads((folder / "climbing.json").read_text())["results"]


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_independent_score_equals_the_textbook_formula(score, folder):
    rows = climbing.integers(*climbing.load_table("tiny", folder))
    parents = [(), (0,), (1, 4), (), (0, 1, 2)]
    expected = naive.network_score(
        rows.tolist(), [1] * len(rows), parents, None, (rows.max(axis=0) + 1).tolist(), score
    )
    assert climbing.network_score(rows, parents, score) == pytest.approx(expected, rel=1e-9)


def test_scores_are_those_of_the_search_and_the_report_repeats(folder):
    rows = measured(folder, "--peers")
    assert [row["library"] for row in rows] == ["tanlearn", "tanlearn, 20 restarts"] * 2
    assert all(row["seconds"] > 0 and row["arcs"] == 4 for row in rows)
    for row in rows[::2]:
        data = climbing.Tanlearn().convert(climbing.integers(*climbing.load_table("tiny", folder)))
        search = climbing.HillClimbing(score=row["score"], max_parents=3)
        model = climbing.MarkovBlanketClassifier(search=search, initial="empty")
        assert model.fit_encoded(data).network_score_ == pytest.approx(row["reached"], abs=1e-6)
    text = (folder / "climbing.md").read_text()
    assert "- *tanlearn* has the best score of all searches in 2 of 2 comparisons." in text
    assert "| tiny | 300 | 5 | tanlearn | **" in text
    (folder / "climbing.md").unlink()
    climbing.main(["--report-only", "--output", str(folder)])
    assert (folder / "climbing.md").read_text() == text


@pytest.mark.filterwarnings("default")  # pyAgrum crashes where a warning at its import is an error
@pytest.mark.parametrize(("package", "library"), [("pyagrum", "pyAgrum"), ("pgmpy", "pgmpy")])
def test_peer_reaches_the_same_score(folder, package, library):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f'{package} is not installed: pip install -e ".[peers]"')
    reached = {(row["library"], row["score"]): row["reached"] for row in measured(folder, "--peers", package)}
    for score in ("bdeu", "bic"):
        assert reached[library, score] == pytest.approx(reached["tanlearn", score], abs=1e-6)

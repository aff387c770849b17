"""Counts of score evaluations: closed forms, exponents, and the committed results."""

import numpy as np
import pytest

from benchmarks import ROOT
from benchmarks.climbing import evaluations
from benchmarks.shared.results import read

RESULTS = ROOT / "benchmarks/climbing/results" / evaluations.FILE


def tree_counts(d):
    """Return the counts of searches that give a parent to all features but one."""
    order = d * (d - 1) // 2
    # Greedy search: each of m orphans can get each feature outside of its own tree, summed over the m trees.
    greedy = sum(d * (m - 1) for m in range(2, d + 1))
    # Super-parent: d features as common parent, then the orphans that are not its root.
    super_parent = sum(d + m - 1 for m in range(2, d + 1))
    return {"greedy search": greedy, "super-parent": super_parent, "order search": order}


def test_committed_counts_have_closed_forms():
    lines = read(RESULTS)
    assert {(line["features"], line["search"]) for line in lines} == {
        (d, name) for d in evaluations.FEATURES for name in evaluations.SEARCHES
    }
    for line in lines:
        if line["search"] in ("greedy search", "super-parent"):
            assert line["edges"] == line["features"] - 1
        expected = tree_counts(line["features"])
        assert line["evaluations"] == expected.get(line["search"], line["evaluations"])
        assert line["search"] != "simulated annealing" or line["evaluations"] <= evaluations.N_STEPS


@pytest.mark.parametrize("name", ["greedy search", "super-parent", "order search"])
def test_the_smallest_data_give_the_committed_counts(name):
    line = evaluations.measure({"features": 8, "search": name})
    committed = next(one for one in read(RESULTS) if evaluations.key(one) == evaluations.key(line))
    assert [line[field] for field in ("evaluations", "edges")] == [
        committed[field] for field in ("evaluations", "edges")
    ]
    assert line["score"] == pytest.approx(committed["score"], rel=1e-9)


def test_exponents_of_powers_are_found():
    features = np.array([8, 16, 64])
    for power in (0, 2, 3):
        assert evaluations.exponent(features, 7.0 * features**power) == pytest.approx(power, abs=1e-12)


def test_report_and_picture_are_written(tmp_path, capsys):
    evaluations.main(["report", "--results", str(RESULTS.parent), "--output", str(tmp_path)])
    assert (tmp_path / "evaluations.md").read_text() == (RESULTS.parents[1] / "evaluations.md").read_text()
    assert (tmp_path / "evaluations.png").stat().st_size > 10_000
    assert "greedy search: d to the power of 3.04" in capsys.readouterr().out

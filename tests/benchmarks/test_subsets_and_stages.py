"""Figures 1 and 3 (d) of differentiable TAN: the plan of parent subsets, complete settings, claims, stages."""

import numpy as np
import pytest
from support.markdown import rows_of

from benchmarks.paper.differentiable_tan import stages, subsets
from benchmarks.shared.data import Problem
from tanlearn import EncodedData
from tanlearn.search.runs import Part


def line(size, setting, draw, error):
    """Return a finished training of a subset of some size."""
    known = {"settings": "published", "seed": 3, "epochs": 500, "fold": 1, "part": "test", "n_folds": 1, "rows": 100}
    own = {"cell": f"TAN Subset K={size}", "run": 5 * setting + draw, "error": error, "seconds": 7.0}
    return {**known, **own, "parameters": {"trade_off": 10.0, "ordering": 0, "draw": draw}}


def setting_lines(setting, better=0.03):
    """Return the ten trainings of a setting; subsets of 2 differ by 1 point, and those of 8 by half a point."""
    small = [line(2, setting, draw, 0.10 + 0.01 * draw + 0.001 * setting) for draw in range(5)]
    return small + [line(8, setting, draw, 0.10 - better + 0.005 * draw + 0.001 * setting) for draw in range(5)]


def test_all_subsets_of_a_setting_have_its_parameters():
    rng = np.random.default_rng(0)
    data = EncodedData.from_codes(rng.integers(0, 3, (40, 9)), np.arange(40) % 2)
    problem = Problem("letter", (Part(data, data.codes, data.y),))
    trainings = list(subsets.plan(problem, 1))
    assert len(trainings) == 10
    drawn = [{**training.line["parameters"], "draw": None} for training in trainings]
    assert all(one == drawn[0] for one in drawn)
    assert {training.line["run"] for training in trainings} == set(range(5, 10))
    small, large = (training.parameters()["candidates"] for training in trainings[:2])
    for i in range(9):
        assert set(small.parents[small.child == i].ravel().tolist()) <= set(
            large.parents[large.child == i].ravel().tolist()
        )
    assert next(iter(subsets.plan(problem, 2))).line["parameters"] != trainings[0].line["parameters"]


def test_only_complete_settings_count():
    lines = [*setting_lines(0), *setting_lines(1)[:-1]]
    runs = subsets.complete_settings(lines)
    assert len(runs) == 10
    assert "the same 1 settings" in " ".join(subsets.subsets_section(runs).split())
    assert subsets.complete_settings(lines[:5]) == []
    assert subsets.subsets_section([]) == ""


def test_claims_and_table_follow_from_the_errors():
    runs = subsets.complete_settings([one for setting in range(5) for one in setting_lines(setting)])
    rows = rows_of(subsets.subsets_section(runs))[1:]
    assert rows[0] == ["1", "10.00", "10.20", "7.00", "7.20"]
    better, closer = subsets.subset_claims(runs)
    assert (better.holds, closer.holds) == (True, True)
    assert better.evidence == "5 settings: K = 2 10.00 to 14.00, K = 8 7.00 to 9.00"
    assert closer.evidence == "5 settings, range in points: K = 2 4.00, K = 8 2.00"
    worse = [one for setting in range(5) for one in setting_lines(setting, better=-0.03)]
    assert subsets.subset_claims(subsets.complete_settings(worse))[0].holds is False
    few = subsets.subset_claims(subsets.complete_settings(setting_lines(0)))
    assert [(claim.holds, claim.evidence[:9]) for claim in few] == [(None, "1 setting")] * 2
    assert [claim.holds for claim in subsets.subset_claims([])] == [None, None]


def test_stages_have_equal_then_learned_then_selected_edges(tmp_path):
    found = {"probabilities": [{"-1": 1.0}, {"-1": 0.1, "0": 0.9}, {"-1": 0.6, "0": 0.3, "1": 0.1}]}
    found["parents"] = [-1, 0, -1]
    none, initial, learned, selected = stages.stages(found).values()
    assert none == []
    assert initial == [(0, 1, 1 / 2), (0, 2, 1 / 3), (1, 2, 1 / 3)]
    assert learned == [(0, 1, 0.9), (0, 2, 0.3), (1, 2, 0.1)]
    assert selected == [(0, 1, 1.0)]
    stages.draw(found, tmp_path / "figure1.png")
    assert (tmp_path / "figure1.png").stat().st_size > 5000
    assert "have probabilities from 0.60 to 0.90" in " ".join(stages.stages_section(found).split())
    assert stages.stages_section(None) == ""


def test_the_stored_stages_are_those_of_a_tree():
    found = stages.read()
    assert len(found["probabilities"]) == len(found["parents"]) == stages.N_FEATURES
    for own, parent in zip(found["probabilities"], found["parents"], strict=True):
        assert sum(own.values()) == pytest.approx(1, abs=1e-3)
        assert own[str(parent)] == max(own.values())

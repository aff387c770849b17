"""Recovery of Chow-Liu trees and numbers of values: results, tables and the claim of differentiable TAN."""

import numpy as np
import pytest
from support.markdown import rows_of
from support.results_files import appended

from benchmarks.paper.differentiable_tan import mdlp_states, recovery, report


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a raw table and a published fold, both generated."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = rng.integers(0, 3, (300, 3)) + y[:, np.newaxis]
    x[:, 2] = np.where(rng.random(300) < 0.9, x[:, 0], x[:, 2])
    for name in ("discretized", "raw"):
        (tmp_path / name).mkdir()
    parts = {"x_tr_fold1": x + 1, "t_tr_fold1": y, "x_te_fold1": x + 1, "t_te_fold1": y}
    np.savez(tmp_path / "discretized" / "letter.npz", n_folds=1, **parts)
    np.savez(tmp_path / "raw" / "vehicle.npz", X=x.astype(float), y=y)
    return tmp_path


def line(name, seed, difference, **changes):
    """Return a finished line with the settings of the paper."""
    settings = {"structure_learning_rate": 1e-3, "batch_size": 100, **recovery.SETTINGS["paper"]}
    found = {"difference": difference, "n_equal": 15, "n_features": 16, "n_tables": 136, "seconds": 10.0}
    return {"set": name, "seed": seed, **settings, **found, **changes}


def test_trainings_are_compared_with_the_tree_and_done_once(folder):
    def run(*options):
        path = folder / "recovery.jsonl"
        recovery.main(["--data", str(folder), "--results", str(path), "--sets", "letter", "vehicle", *options])
        return appended(path)

    first = run("--epochs", "3", "--seeds", "0", "--settings", "frequencies")
    assert [(found["set"], found["n_features"]) for found in first] == [("letter", 3), ("vehicle", 3)]
    assert all(found["difference"] > -recovery.ROUNDING for found in first)  # the Chow-Liu tree is the optimum
    again = run("--epochs", "3", "--seeds", "0", "1", "--settings", "frequencies")
    assert again[:2] == first
    assert [found["seed"] for found in again] == [0, 0, 1, 1]


def test_claim_is_about_the_settings_of_the_paper():
    lines = [line("letter", 0, 1e-12), line("letter", 1, -1e-12), line("letter", 0, 1.0, learning_rate=3e-3)]
    claim = recovery.recovery_claim(lines)
    assert (claim.holds, claim.evidence) == (True, "trainings that recover it: letter 2 of 2")
    other = "; on smaller tables that are not in the paper: segment 0 of 1"
    smaller = recovery.recovery_claim([*lines, line("segment", 0, 2e-3)])
    assert (smaller.holds, smaller.evidence) == (True, claim.evidence + other)
    missed = recovery.recovery_claim([*lines, line("usps", 0, 2e-4)])
    assert (missed.holds, missed.evidence) == (False, "trainings that recover it: letter 2 of 2, usps 0 of 1")
    assert recovery.recovery_claim(lines[2:]).holds is None


def test_table_has_a_row_for_each_setting():
    lines = [line("letter", 0, 1e-12), line("letter", 1, 3.4e-3, n_equal=14), line("letter", 0, 1.0, n_epochs=300)]
    rows = rows_of(recovery.recovery_section(lines))[1:]
    assert rows[0][:6] == ["letter", "U(-0.1, 0.1)", "0.03", "0.001", "300", "100"]
    assert rows[1][6:] == ["1 of 2", "0.0034", "14 of 16", "136", "10"]
    assert recovery.recovery_section([]) == ""


def test_numbers_of_values_stand_beside_the_published_ones():
    numbers = {"rows": 13_333, "features": 16, "least": 2, "most": 12}
    lines = [
        {"set": "letter", "mean": 9.06, "entropy_difference": None, **numbers},
        {"set": "mnist, bicubic", "mean": 13.1, "entropy_difference": 0.0035, **numbers},
        {"set": "mnist, block means", "mean": 4.5, "entropy_difference": 0.91, **numbers},
    ]
    rows = rows_of(mdlp_states.values_section(lines))[1:]
    assert rows[0] == ["letter", "13,333", "16", "9.1", "9.1", "2 to 12", ""]
    assert rows[1][-1] == "0.0035"
    said = mdlp_states.values_in_words(lines)
    assert said.endswith("are: letter 9.1 (9.1), mnist 13.1 (13.2).")
    assert mdlp_states.values_section([]) == mdlp_states.values_in_words([]) == ""


def test_report_has_both_sections(tmp_path):
    values = [{"set": "usps", "rows": 7333, "features": 256, "mean": 3.4, "least": 1, "most": 8}]
    values[0]["entropy_difference"] = None
    report.write_report({}, tmp_path, [line("letter", 0, 1e-12)], values)
    details = (tmp_path / "report_details.md").read_text(encoding="utf-8")
    assert "## Recovery of the Chow-Liu structure" in details
    assert "## Numbers of values per feature" in details
    summary = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "trainings that recover it: letter 1 of 1" in summary

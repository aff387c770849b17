"""Parent dropout beside what HybridCV chooses from: runs on small sets, and what is called better."""

import numpy as np
import pytest
from support.results_files import appended

from benchmarks.quality import parent_dropout as command
from benchmarks.quality import runs
from tanlearn import MaximumLikelihood


@pytest.fixture
def folder(tmp_path):
    """Write two raw sets."""
    (tmp_path / "raw").mkdir()
    rng = np.random.default_rng(0)
    for name in ("first", "second"):
        y = np.arange(60) % 2
        np.savez(tmp_path / "raw" / f"{name}.npz", X=np.stack([y, rng.integers(0, 3, 60)], axis=1), y=y)
    return tmp_path


def test_sets_are_run_once_and_reported(folder, monkeypatch):
    names = dict.fromkeys(command.PARAMETERS, MaximumLikelihood())
    monkeypatch.setattr(command, "PARAMETERS", names)
    places = ["--data", str(folder), "--results", str(folder)]
    for _ in range(2):
        command.main(["run", "--sets", "first", "second", *places])
    path = folder / "parent_dropout.jsonl"
    assert len(appended(path)) == 2 * 5 * len(names)
    command.main(["report", "--results", str(folder), "--output", str(folder)])
    text = (folder / "parent_dropout_details.md").read_text()
    assert "| first | 60 | 0.00 |" in text
    assert "a clearly lower error on 0 of 2 data sets and a clearly higher error on 0." in text
    text = (folder / "parent_dropout.md").read_text()
    assert text.startswith(
        "# Parent dropout\n\nParent dropout of 0.3 in long trainings clearly lowers the error on 0 of 2"
    )
    assert "| HybridCV | 0.00 | 0.00 | 0.00 |" in text


def test_clear_is_what_exceeds_two_standard_errors():
    def line(name, learner, wrong):
        flags = np.arange(100) < wrong
        measured = {"log_loss": 0.5, "seconds": 1.0, "wrong": runs.packed(flags)}
        start = {"set": name, "fold": 1, "n_folds": 1, "learner": learner, "half": "chosen on"}
        return {**start, **measured, "n_train": 400, "n_test": 100}

    lines = [line("less", "long", 30), line("less", "long, 0.3", 20)]
    lines += [line("alike", "long", 30), line("alike", "long, 0.3", 29)]
    found = command.outcomes(lines)
    said = command.verdicts(found, {"less": "chosen on", "alike": "chosen on"})
    assert "a clearly lower error on 1 of 2 data sets and a clearly higher error on 0 (less -10.00 points)." in said
    half = {"less": "chosen on", "alike": "chosen on"}
    sentences = " ".join(command.summary(found, half).split())
    assert sentences == (
        "Parent dropout of 0.3 in long trainings clearly lowers the error on 1 of 2 data sets and clearly raises it on "
        "0. The mean error changes from 30.00 to 24.50 %, and a fit takes 1.0 times as long."
    )
    found = command.outcomes([*lines, line("less", "long, 0.3", 40)])  # replaces a result
    assert "lowers the error on 0 of 2 data sets and clearly raises it on 1." in " ".join(
        command.summary(found, half).split()
    )

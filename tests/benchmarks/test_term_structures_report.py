"""Sentences of the report on structures of networks of terms follow from results."""

import pytest
from support.results_files import write

from benchmarks.quality import term_structures as benchmark


def lines_of(name, values):
    """Return all lines of a data set, of pairs of error and log loss for each structure."""
    others = {"seconds": 1.5, "n_edges": 3, "n_test": 50, "versions": "tanlearn 1, numpy 2"}
    return [
        {"set": name, "fold": fold, "structure": structure, "error": error, "log_loss": log_loss, **others}
        for fold in range(1, benchmark.N_FOLDS + 1)
        for structure, (error, log_loss) in values.items()
    ]


def report_of(lines, folder):
    """Return the report of lines, and its words with single spaces."""
    write(folder / benchmark.FILE, lines)
    benchmark.main(["report", "--results", str(folder), "--output", str(folder)])
    text = (folder / "term_structures.md").read_text(encoding="utf-8")
    return text, " ".join(text.split())


def test_the_structure_is_chosen_on_other_data_sets(tmp_path):
    equal = dict.fromkeys(benchmark.STRUCTURES, (20.0, 0.5))
    lines = lines_of("heart", equal | {"gradient": (19.0, 0.4)}) + lines_of("diabetes", equal)
    lines += lines_of("ionosphere", equal | {"gradient": (10.0, 0.3), "Chow-Liu": (30.0, 0.6)})
    lines += lines_of("glass", equal)[:-1]  # not finished
    text, sentences = report_of(lines, tmp_path)
    assert (
        "On heart, gradient has the lowest mean log loss. The following results are on the held-out data sets "
        "ionosphere and diabetes. With gradient, the mean log loss is 0.400"
    ) in sentences
    assert "- With hill climbing, the log loss is the same on each of them." in sentences
    assert (
        "- With gradient, the mean log loss is 0.400 instead of 0.500, and the mean error 15.0 instead of 20.0 %. "
        "The log loss is lower on 1 of 2 data sets, and higher on 0. The largest difference is on ionosphere, 0.300 "
        "instead of 0.500."
    ) in sentences
    assert "- With Chow-Liu, the mean log loss is 0.550 instead of 0.500" in sentences
    assert "| gradient | 19.0 | 15.0 | 0.400 | 0.400 | 3.0 | 1.5 |" in text
    assert "| ionosphere | 20.0 / 0.500 | 30.0 / 0.600 |" in text
    assert "not measured yet: glass, hayes-roth, tic-tac-toe, balance-scale," in sentences
    assert "| glass |" not in text


def test_nothing_is_compared_if_the_default_is_chosen(tmp_path):
    equal = dict.fromkeys(benchmark.STRUCTURES, (20.0, 0.5))
    _, sentences = report_of(lines_of("heart", equal | {"gain": (19.0, 0.4)}) + lines_of("diabetes", equal), tmp_path)
    assert "On heart, gain has the lowest mean log loss. | structure |" in sentences


def test_report_needs_a_finished_data_set_of_each_half(tmp_path):
    with pytest.raises(SystemExit, match="no data set of one half is finished"):
        report_of(lines_of("heart", dict.fromkeys(benchmark.STRUCTURES, (20.0, 0.5))), tmp_path)

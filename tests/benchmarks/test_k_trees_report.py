"""The pages about gradient k-trees: verdicts that follow from results, and one row per data set in the details."""

import numpy as np
import pytest

from benchmarks.quality import k_trees, runs


def line(name, learner, wrong, *, log_loss=0.5, seconds=1.0):
    """Return a line of results with one fold: the first ``wrong`` of 100 test rows are wrong."""
    start = {"set": name, "fold": 1, "n_folds": 1, "learner": learner, "versions": "tanlearn 1 abc, numpy 2"}
    measured = {"log_loss": log_loss, "seconds": seconds, "wrong": runs.packed(np.arange(100) < wrong)}
    return {**start, **measured, "n_train": 900, "n_test": 100}


def pages(lines, folder):
    """Write the report, and return both pages in one line each."""
    k_trees.write_report(lines, folder)
    return [" ".join((folder / f"k_trees{end}.md").read_text(encoding="utf-8").split()) for end in ("", "_details")]


def test_sentences_follow_from_results(tmp_path):
    own, *others = k_trees.LEARNERS
    lines = [line(name, learner, 20, log_loss=0.6) for name in ("car", "chess") for learner in others]
    lines += [line("car", own, 10, seconds=8.0), line("chess", own, 30, seconds=4.0)]
    text, details = pages(lines, tmp_path)
    assert text.startswith(
        "# Gradient k-trees The k-tree has the lowest error on 1 and the lowest log loss on 2 of 2 data sets. Its mean "
        "error is 20.00 %; the best other learner, TAN Subset, has 20.00 %. Relative to TAN Order-free, the error of "
        "the k-tree is clearly lower on 1 data sets and clearly higher on 1 (chess)."
    )
    assert "a fit takes 6 times as long as TAN Order-free and 6 times as long as KDB-2 back-off in the median" in text
    assert "and 8 s at most (car)." in text
    assert "| k-tree | 20.00 | 0.500 | 1 | 2 | 6.0 |" in text
    assert "| car | 1,000 | 4.0 | **10.00** | 20.00 |" in details
    lines[-1] = line("chess", own, 19, log_loss=0.7)
    text, _ = pages(lines, tmp_path)
    assert "the lowest error on 2 and the lowest log loss on 1 of 2 data sets. Its mean error is 14.50 %" in text
    assert "clearly lower on 1 data sets and clearly higher on 0." in text


def test_unfinished_data_sets_have_no_verdict(tmp_path):
    text, details = pages([line("car", "k-tree", 10)], tmp_path)
    assert text.startswith("# Gradient k-trees No data set is finished yet.")
    assert "| car | 1,000 | 3.0 | **10.00** | - | - | - | - |" in details
    with pytest.raises(SystemExit, match="nothing is finished"):
        k_trees.write_report([], tmp_path)

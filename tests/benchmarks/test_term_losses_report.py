"""Sentences of the report on losses of networks of terms follow from results."""

import pytest
from support.results_files import write

from benchmarks.quality import term_losses as benchmark


def line(name, fold, loss, error, log_loss):
    """Return a line of results, in which incomplete rows have twice the error and log loss."""
    start = {"set": name, "fold": fold, "loss": loss}
    complete = {"error_complete": error, "log_loss_complete": log_loss}
    lost = {"error_lost": 2 * error, "log_loss_lost": 2 * log_loss}
    return start | complete | lost | {"seconds": 1.5, "n_test": 50, "versions": "tanlearn 1, numpy 2"}


def lines_of(name, values):
    """Return all lines of a data set, of pairs of error and log loss for each loss."""
    return [
        line(name, fold, loss, *values[loss]) for fold in range(1, benchmark.N_FOLDS + 1) for loss in benchmark.LOSSES
    ]


def test_the_trade_off_is_chosen_on_other_data_sets(tmp_path):
    default = {benchmark.DEFAULT: (20.0, 0.5), benchmark.MARGIN: (19.0, 0.6)}
    chosen = default | dict.fromkeys(benchmark.TRADE_OFFS, (18.0, 0.48)) | {"hybrid, 10": (25.0, 0.4)}
    held_out = default | dict.fromkeys(benchmark.TRADE_OFFS, (10.0, 0.1)) | {"hybrid, 10": (18.5, 0.45)}
    worse = default | dict.fromkeys(benchmark.TRADE_OFFS, (30.0, 0.51))
    lines = lines_of("heart", chosen) + lines_of("breast", held_out) + lines_of("tae", worse)
    lines += lines_of("glass", chosen)[:-1]  # not finished
    write(tmp_path / benchmark.FILE, lines)
    benchmark.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
    text = (tmp_path / "term_losses.md").read_text(encoding="utf-8")
    sentences = " ".join(text.split())
    assert (
        "The loss of `TermNetClassifier` with the lowest mean log loss on 2 held-out data sets is "
        "`SoftHybrid(trade_off=1)` for complete test rows and `SoftHybrid(trade_off=1)` for test rows without 30 % of "
        "their values."
    ) in sentences
    assert (
        "`SoftHybrid(trade_off=10)` lowers the mean log loss from 0.500 to 0.480. The log loss is lower on 1 of 2 "
        "data sets. The largest change is on breast, from 0.500 to 0.450. The mean error changes from 20.0 to 24.2 %."
    ) in sentences
    assert "`Margin()` raises the mean log loss from 1.000 to 1.200." in sentences
    assert "| hybrid, 10 | 25.0 | 24.2 | 0.400 | 0.480 |" in text
    assert "| tae | 20.0 / 0.500 | 19.0 / 0.600 |" in text
    assert "glass" not in text


def test_report_needs_a_finished_data_set_of_each_half(tmp_path):
    values = dict.fromkeys(benchmark.LOSSES, (20.0, 0.5))
    write(tmp_path / benchmark.FILE, lines_of("heart", values))
    with pytest.raises(SystemExit, match="no data set of one half is finished"):
        benchmark.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])

"""The benchmark of counting over partitions: rows, the model's arithmetic, what is left to do, and the report."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")

from support.results_files import appended, cut_after

from benchmarks.scale import counts, measure, model, rows
from benchmarks.scale.cells import Cells
from benchmarks.scale.report import size, span, summary, write_report


@pytest.mark.parametrize("n_partitions", [1, 3])
def test_rows_are_the_same_in_any_partitions(tmp_path, n_partitions):
    n_rows = rows.BLOCK + 1000
    rows.write_table(tmp_path, n_rows, n_partitions, 3)
    parts = [pd.read_parquet(path) for path in sorted(tmp_path.iterdir())]
    assert len(parts) == n_partitions
    found = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(found, rows.make_rows(0, n_rows, 3), check_dtype=False)
    assert not found.iloc[: n_rows - rows.BLOCK].equals(found.iloc[rows.BLOCK :].reset_index(drop=True))
    kinds = [found[name].nunique() for name in found]
    assert kinds[8:] == [*rows.N_VALUES, 3]
    assert [kind == n_rows for kind in kinds[:8]] == [False, True] * 4


def test_a_file_that_is_there_is_not_written_again(tmp_path):
    rows.write_table(tmp_path, 100, 2, 2)
    last = max(tmp_path.iterdir())
    last.unlink()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    rows.write_table(tmp_path, 100, 2, 2)
    assert last.exists()
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_merges_and_bytes_of_trees():
    assert model.levels(1) == [1]
    assert model.levels(300) == [300, 19, 2, 1]
    assert [model.chain(n) for n in (1, 2, 16, 17, 300)] == [0, 1, 15, 15 + 1, 15 + 15 + 1]
    assert model.sent_bytes(300, 1, 10) == 0
    assert model.sent_bytes(300, 2, 10) == (300 + 19 + 2) * 10 / 2
    assert model.sent_bytes(300, 100, 16, 32) == 15 * (300 + 2 * (19 + 2))
    assert model.reduction_bytes(3) == 17 * 3


def test_seconds_of_a_hand_made_case():
    costs = model.Costs(fixed=1, task=0.01, partition=0.1, row=1e-6, merge=0.5)
    # 20 partitions of 50,000 rows on 8 workers: three rounds of 0.15 s, and 15 + 1 merges, 2 bytes each at 4 a second
    expected = 1 + 0.2 + 3 * 0.15 + 16 * (0.5 + 0.5)
    assert costs.seconds(10**6, 20, 8, n_bytes=2, network=4) == pytest.approx(expected)


def test_costs_are_found_in_what_they_make():
    costs = model.Costs(fixed=0.7, task=0.002, partition=0.03, row=4e-6, merge=0.001)
    shapes = [(n, p, w) for n in (10**5, 10**6, 10**7) for p in (8, 32, 128) for w in (1, 2)]
    found = model.fit_costs([(*shape, costs.seconds(*shape)) for shape in shapes], merge=0.001)
    np.testing.assert_allclose(found, costs, rtol=1e-6)


def test_bytes_of_counts_and_summaries():
    # classes, 2 + 3 + 4 values, and 6 + 8 + 12 pairs of values, in two classes
    assert model.count_bytes([2, 3, 4], 2) == 8 * 2 * (1 + 9 + 26)
    assert model.summary_bytes(3, 2, 1000, 10) == 3 * 20 * 1000
    assert model.summary_bytes(1, 2, 10**7, 8) == 20 * (65_536 + 4 * 2 * 8192)


def test_blocks_of_pairs_fit_into_half_of_the_memory():
    blocks = model.Blocks.of(10, 2, 3, n_workers=4, memory=2 * 17 * 8 * 3 * 4 * 16)
    np.testing.assert_allclose(blocks, (4, 6, 8 * 3 * 4 * 16, 6 * 8 / 10, 6 * 1536 * 4 * 0.75 / 4, 8 * 45))
    assert model.Blocks.of(10, 2, 3, 4, 2**40)[:2] == (10, 1)
    assert model.counting_seconds(100, 3, 2, 50.0) == 3.0


def line(n_rows, n_partitions, n_workers, task, repeat=0, seconds=None):
    seconds = 0.2 + 5e-6 * n_rows / n_workers if seconds is None else seconds
    cell = {"rows": n_rows, "partitions": n_partitions, "workers": n_workers, "task": task, "repeat": repeat}
    memory = {"idle_worker": 300.0, "peak_worker": 400.0, "peak_client": 350.0}
    spent = {"seconds": seconds, "worker_cpu": seconds, "client_cpu": 0.1 + 0.004 * n_partitions}
    sizes = {"received": 10**6, "client_received": 10**5, "result_bytes": 2 * 10**6}
    return {**cell, **spent, **memory, **sizes, "versions": "tanlearn 0.1.0 abc, numpy 2"}


def fake(monkeypatch, done):
    """Have lines made up in place of measured, and no table written."""

    def lines_of(table, n_workers, starts):
        for start in starts:
            done.append(start)
            if n_workers:
                yield line(*(start[name] for name in ("rows", "partitions", "workers", "task", "repeat")))
            else:
                yield start | measure.work_of_partition(str(table))

    def write_table(folder, *_):
        folder.mkdir()
        rows.make_rows(0, 600, 3).to_parquet(folder / "part.parquet")

    monkeypatch.setattr(counts, "Table", lambda folder: folder / "part.parquet")
    monkeypatch.setattr(counts, "lines_of", lines_of)
    monkeypatch.setattr(counts, "write_table", write_table)


def test_runs_go_on_where_they_were_stopped_and_are_reported(monkeypatch, tmp_path, capsys):
    done = []
    fake(monkeypatch, done)
    results = ["--results", str(tmp_path / "results")]
    run = ["run", "--rows", "100000", "400000", "1000000", "--partitions", "8", "64", "--repeats", "2", *results]
    counts.main([*run, "--time-limit", "0"])
    assert not done
    counts.main(run)
    assert len(done) == 5 * (2 * 2 * 4 + 1)  # of 100,000 rows, 64 partitions would be too small
    path = tmp_path / "results" / "counts.jsonl"
    lines = appended(path)
    cut_after(path, len(lines) - 3)
    del done[:]
    counts.main(run)
    assert [counts.key(line) for line in lines[-3:]] == [counts.key(one) for one in done]
    capsys.readouterr()
    counts.main(["report", "--output", str(tmp_path / "report"), *results])
    page, said = ((tmp_path / "report" / name).read_text() for name in ("counts.md", "counts_details.md"))
    assert (tmp_path / "report" / "counts.png").stat().st_size > 0
    assert "100,000 | 8 | 2 | 0.45 (0.45)" in page
    assert "| 400,000 | 8 | 1.83 | 1.83 | 1.83 | 1.83 |" in said
    assert "Chow-Liu 1.93 at best, met" in said
    assert "| Chow-Liu | 1,000,000 | 64 | 2 | 2.70 |" in said
    assert str(tmp_path) not in said + page
    sentences = " ".join(page.split())
    assert "From Parquet files, 1,000,000 rows are fitted on 2 workers: Chow-Liu in 2.7 s (370,370 rows/s)" in sentences
    assert "1.93 for Chow-Liu and 1.93 for naive Bayes. The target of 1.8 is met for 2 of 2 fits." in sentences
    assert "A worker needs at most 400 MiB with 8 partitions and 400 MiB with 64 partitions." in sentences
    assert "Counts of all pairs of 300 features fit into 16 GiB per worker" in sentences


def test_speed_ups_and_errors_are_of_the_least_seconds(tmp_path):
    seconds = {1: (4.0, 3.0, 9.0), 2: (2.0, 2.5, 2.2)}
    lines = [line(10**5, 8, w, "Chow-Liu", k, s) for w, some in seconds.items() for k, s in enumerate(some)]
    cells = Cells(lines)
    assert cells.speed_up(10**5, 8, "Chow-Liu") == 1.5
    assert cells.speed_up(10**5, 8, "naive Bayes") is None
    assert cells.median(10**5, 8, 1, "Chow-Liu") == 4.0
    assert list(cells.check("Chow-Liu")) == []
    assert cells.client_seconds("Chow-Liu") >= 0
    text = " ".join(summary(cells).split())
    assert text == (
        "From Parquet files, 100,000 rows are fitted on 2 workers: Chow-Liu in 2.0 s (50,000 rows/s). The best "
        "speed-up with two workers is 1.50 for Chow-Liu. The target of 1.8 is met for 0 of 1 fits. A worker needs at "
        "most 400 MiB with 8 partitions."
    )
    with pytest.raises(SystemExit, match="nothing is finished"):
        write_report([], tmp_path)


def test_work_of_a_partition_is_told_by_stage(tmp_path):
    path = tmp_path / "part.parquet"
    rows.make_rows(0, 2000, 3).to_parquet(path)
    found = measure.work_of_partition(str(path), 1500)
    assert found["n_rows"] == 1500
    assert list(found["cpu"]) == ["read", "summarize", "encode", "count", "merge summaries", "merge counts"]
    assert found["n_states"][8:] == list(rows.N_VALUES)
    assert found["counts_bytes"] >= model.count_bytes(found["n_states"], 3)


def test_sizes_and_times_in_words():
    assert [size(n) for n in (12, 1234, 99_600, 2.5e9, 3e15)] == ["12 B", "1.2 kB", "100 kB", "2.5 GB", "3,000 TB"]
    assert [span(s) for s in (0.0123, 90, 600, 10_000, 10**6)] == ["12.3 ms", "90 s", "10 min", "2.78 h", "12 days"]

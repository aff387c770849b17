"""Memory of large tables: operations on few rows, the file, and the report."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.markdown import rows_of

from benchmarks.speed import memory as benchmark

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is reset on Linux only")


@pytest.mark.parametrize("operation", benchmark.OPERATIONS)
def test_operations_report_seconds_and_memory(operation, tmp_path, capsys):
    file = tmp_path / "table.parquet"
    benchmark.write_table(file, 700, 7)
    benchmark.do_one(operation, "naive Bayes", 700, 7, file)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["peak"] >= found["before"] > 0
    assert found["seconds"] >= 0


def test_table_is_the_same_in_memory_and_in_the_file(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.setattr(benchmark, "BLOCK", 300)
    X, y = benchmark.make_table(700, 7)
    benchmark.write_table(tmp_path / "table.parquet", 700, 7)
    frame = pq.read_table(tmp_path / "table.parquet").to_pandas()
    np.testing.assert_array_equal(frame.drop(columns="y").to_numpy(np.float32), X)
    np.testing.assert_array_equal(frame["y"], y)
    assert len(np.unique(X[:, 1])) == benchmark.N_VALUES


def test_report_opens_with_the_memory_of_the_largest_table(tmp_path):
    def line(operation, learner, seconds, peak, rows=2_000_000):
        size = {"rows": rows, "columns": 30, "before": 500.0}
        return {
            "operation": operation,
            "learner": learner,
            **size,
            "seconds": seconds,
            "peak": peak,
            "versions": "t, n",
        }

    lines = [
        line("fit", "naive Bayes", 2.0, 700.0),
        line("fit", "Chow-Liu TAN", 4.0, 900.0),
        line("fit", "Chow-Liu TAN", 4.0, 9000.0, rows=1000),
        line("scan", "", 1.0, 520.0),
        line("fit_batches", "Chow-Liu TAN", 8.0, 800.0),
    ]
    benchmark.write_report(lines, tmp_path / "memory.md")
    text = (tmp_path / "memory.md").read_text(encoding="utf-8")
    said = " ".join(text.split())
    assert "peak memory: for 2,000,000 rows of 30 columns fit 400 MiB and fit_batches 300 MiB. From Parquet" in said
    assert "Chow-Liu TAN 250,000. Arrow reads 2,000,000 rows per processor second." in said
    row = ["2,000,000 x 30", "fit", "Chow-Liu TAN", "4.00", "500,000", "500", "900", "400"]
    assert row in rows_of(text)
    benchmark.write_report(
        [*lines, line("fit_batches", "Chow-Liu TAN", 9.0, 600.0, rows=10**7)], tmp_path / "memory.md"
    )
    said = " ".join((tmp_path / "memory.md").read_text(encoding="utf-8").split())
    assert "2,000,000 rows of 30 columns fit 400 MiB; for 10,000,000 rows of 30 columns fit_batches 100 MiB." in said

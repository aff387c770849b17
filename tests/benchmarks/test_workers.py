"""Training by Dask on worker processes: the files, measures in this process, and the section of the page."""

from pathlib import Path

import numpy as np
import pytest
from support.markdown import rows_of

pytest.importorskip("distributed")

from benchmarks.speed import memory, workers

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is reset on Linux only")


def line(learner, seconds, peak):
    """Return a finished line."""
    size = {"rows": 10_000_000, "columns": 30, "workers": 2, "memory_limit": "2GiB", "partitions": 10}
    memories = {"worker_before": 300.0, "worker_peak": peak, "client_before": 350.0, "client_peak": 400.0}
    return {"learner": learner, **size, **memories, "wall": 2 * seconds, "seconds": seconds}


def test_files_are_the_table_in_partitions(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.setattr(memory, "BLOCK", 100)
    monkeypatch.setattr(workers, "BLOCK", 100)
    monkeypatch.setattr(workers, "PARTITION", 300)
    paths = workers.write_folder(tmp_path, 700, 7)
    assert [pq.read_metadata(path).num_rows for path in paths] == [300, 300, 100]
    X, y = memory.make_table(700, 7)
    found = np.concatenate([pq.read_table(path).to_pandas().to_numpy(np.float32) for path in paths])
    np.testing.assert_array_equal(found, np.column_stack([X, y]))


class Client:
    """A client whose only worker is this process."""

    def run(self, function):
        """Return the result of the worker."""
        return {"worker": function()}


@pytest.mark.parametrize("learner", workers.LEARNERS)
def test_a_fit_reports_seconds_and_memory(learner):
    frame = workers.few_rows(5, 2)
    model = workers.make(learner)
    found = workers.measured(Client(), lambda: model.fit(frame, "y"))
    assert found["worker_peak"] >= found["worker_before"] > 0
    assert found["seconds"] > 0
    assert model.n_features_in_ == 5
    assert sum(workers.scan(frame)) == 1000


def test_section_and_verdict_state_rates_and_peaks():
    lines = [line("forest", 100.0, 900.0), line("scan", 5.0, 350.0), line("Chow-Liu TAN", 40.0, 700.0)]
    rows = rows_of(workers.section(lines))[1:]
    assert [row[1] for row in rows] == ["scan", "Chow-Liu TAN", "forest of 2 networks"]
    assert rows[2][2:] == ["200.0", "100.0", "50,000", "900", "600", "400"]
    said = workers.verdict(lines)
    assert "forest of 2 networks 100,000 rows per processor second" in said
    assert "A worker uses at most 900 MiB." in said
    assert workers.section([]) == workers.verdict([]) == ""

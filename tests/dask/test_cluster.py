"""On a cluster of processes: the same models, also where a worker dies or has no room for what it holds."""

import os

import numpy as np
import pytest
from sklearn.base import clone
from support.dask_tables import FEATURES, MODELS, assert_same_model, losses, table
from support.processes import PATIENT_DASK

import tanlearn
from tanlearn import LBFGS
from tanlearn.dask import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.dask.objective import PartitionedObjective

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    """Start two workers, whose held data are written to disk from the first byte on."""
    options = {
        **PATIENT_DASK,
        "distributed.worker.memory.target": 1e-9,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": False,
        "distributed.admin.large-graph-warning-threshold": "1GB",
    }
    with (
        dask.config.set(options),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit="4GiB", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kept_on_disk(dask_worker):
    """Return the keys of the encoded partitions that a worker has written to disk."""
    return {str(key) for key in dask_worker.data.disk if str(key).startswith("_hold")}


@pytest.mark.parametrize("name", MODELS)
def test_workers_make_the_model_of_one_process(name, cluster):
    frame = table()
    rows = dd.from_pandas(frame, npartitions=5)
    found = clone(MODELS[name]).fit(rows, "sold", "times")
    assert_same_model(found, frame)
    predicted = found.predict(rows[FEATURES])
    assert predicted.npartitions == 5
    assert predicted.compute().tolist() == found.to_local().predict(frame[FEATURES]).tolist()


def test_a_worker_that_dies_while_it_counts_changes_nothing(cluster, tmp_path):
    frame = table()
    rows = dd.from_pandas(frame, npartitions=6)

    def die_when_counted(part, path):
        """End this process when the first partition is read for the second time: then rows are counted."""
        if 0 in part.index and not os.path.exists(f"{path}.read"):
            open(f"{path}.read", "w").close()
        elif 0 in part.index and not os.path.exists(path):
            open(path, "w").close()
            os._exit(1)
        return part

    path = tmp_path / "dead"
    before = set(cluster.scheduler_info(n_workers=-1)["workers"])
    dying = rows.map_partitions(die_when_counted, str(path), meta=frame.iloc[:0])
    found = BayesNetClassifier(structure=MODELS["Chow-Liu"].structure).fit(dying, "sold", "times")
    assert path.exists()
    cluster.wait_for_workers(2)
    assert before != set(cluster.scheduler_info(n_workers=-1)["workers"])
    assert_same_model(found, frame)


def test_partitions_that_are_kept_on_disk_are_searched_as_in_memory(cluster, monkeypatch):
    kept, evaluate = [], PartitionedObjective.__call__

    def watched(self, rho):
        found = evaluate(self, rho)
        kept.append(len(set().union(*cluster.run(kept_on_disk).values())))
        return found

    monkeypatch.setattr(PartitionedObjective, "__call__", watched)
    frame = table(4000)
    rows = dd.from_pandas(frame, npartitions=4).persist()
    distributed.wait(rows)
    parameters = LBFGS(max_iter=8, calibrate=False)
    model = NaiveBayesClassifier(parameters=parameters)
    found = clone(model).fit(rows, "sold", "times")
    assert max(kept) == 4
    whole = tanlearn.NaiveBayesClassifier(parameters=parameters).fit(frame[FEATURES], frame["sold"], frame["times"])
    np.testing.assert_allclose(losses(found), losses(whole), rtol=1e-9)
    np.testing.assert_allclose(found.tables_.cells, whole.tables_.cells, atol=1e-9)
    again = clone(model).fit(rows, "sold", "times")
    np.testing.assert_array_equal(again.tables_.cells, found.tables_.cells)


def test_an_error_of_a_worker_is_that_of_this_process(cluster):
    frame = table()
    parts = [frame.iloc[:100], frame.iloc[100:200].assign(rooms="many"), frame.iloc[200:]]
    rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(TypeError, match=r"^in partition 1: X column 'rooms' holds strings where partition 0 "):
        NaiveBayesClassifier().fit(rows, "sold")

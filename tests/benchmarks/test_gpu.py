"""The benchmark of the device at tiny sizes: floors by hand, checks that can fail, results that go on, sentences."""

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.markdown import rows_of
from support.results_files import appended, cut_after, write

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import measure, population, resources
from benchmarks.suite.shapes import SHAPES
from tanlearn import CandidateSets, EncodedData
from tanlearn.kernels.cuda import train as cuda_train
from tanlearn.training.tan_state import State

#: rows, values of every feature, classes, batch size
TINY = 90, [3, 2, 4, 2], 3, 20


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Make generated data tiny."""
    for name in ("letter", "usps"):
        monkeypatch.setitem(SHAPES, name, TINY)


@pytest.fixture
def run(tmp_path):
    """Return the command over generated data, tiny where nothing else is said."""

    def run(*options):
        places = ["--data", str(tmp_path), "--results", str(tmp_path / "results.jsonl")]
        command.main([*options, "--quick", "--mebibytes", "1", "--repeats", "2", *places])

    return run


def body_of(text):
    """Return the rows of printed tables without headers."""
    return [row for row in rows_of(text) if row[0] != "data"]


def small_problem():
    """Two classes, two features, five rows; tables of 4, of 6 and of 12 cells."""
    data = EncodedData.from_codes([[0, 0], [1, 2], [0, 1], [1, 1], [0, 2]], [0, 1, 0, 1, 1])
    state = State(data, CandidateSets.from_lists([[], [0]]), "uniform", "float32", np.random.default_rng(0))
    state.phi[2] = 50  # far above the noise: the largest table is always drawn
    return data, state


def test_floors_are_those_counted_by_hand():
    data, state = small_problem()
    rng = np.random.default_rng(0)
    warm, cold = (measure.touched(state, temperature, 5, rng) for temperature in (10.0, 0.1))
    # Five rows of two classes pick ten cells at most. Whoever has no choice, needs no gradient of it.
    assert warm == (4 + 12, 4 + 10, 6, 1.0, 2)
    assert cold == (4 + 12, 4 + 10, 0, 0.0, 1)
    drawn = 16 * 4 * (3 + 3 + 1 + 1)
    batch = 5 * 2 * (1 + 4) + 4 * (14 + 5 * 2)
    assert measure.step_bytes(warm, data, 5) == (drawn + 6 * 4 * (2 + 1), batch)
    assert measure.step_bytes(cold, data, 5) == (drawn, batch)


def test_floors_grow_with_the_runs(run, capsys):
    run("floor", "--runs", "1", "50", "--bandwidth", "0.5", "--sets", "letter")
    rows = body_of(capsys.readouterr().out)
    assert [(row[0], row[3], row[4]) for row in rows] == [
        ("letter (generated)", runs, when) for runs in ("1", "50") for when in ("beginning", "end")
    ]
    assert rows[0][5] == "100"
    for one, fifty in zip(rows[:2], rows[2:], strict=True):
        sweep, batch = float(fifty[7]), float(fifty[8])
        assert float(one[7]) == pytest.approx(sweep / 50, abs=6e-4)
        assert float(fifty[10]) == pytest.approx((sweep + batch) / 0.5e-3, rel=0.02)


def test_bytes_of_kernels_are_those_counted_by_hand():
    data, state = small_problem()
    found = measure.touched(state, 0.1, 5, np.random.default_rng(0))
    batch = measure.step_bytes(found, data, 5)[1]
    assert resources.kernel_bytes(state, data, 5, found, 2) == {
        "gather_batches": 2 * 2 * 10,
        "draw_uniform": 2 * 4 * 3,
        "draw_structures": 2 * (100 * 3 + 10 + 40),
        "draw_trees": 2 * (16 * 3 + 8 * 2),
        "score_batches": 2 * (batch - 10),
        "step_tables": 2 * 16 * 4 * 8,
    }


@pytest.mark.parametrize(
    ("use", "warps"),
    [
        (resources.Used(32, 0, 0, 0), 64),
        (resources.Used(64, 8, 8, 0), 32),
        (resources.Used(65, 0, 0, 0), 24),  # 72 registers are taken
        (resources.Used(32, 0, 0, 40 * 1024), 40),  # five blocks
    ],
)
def test_occupancy_is_that_of_registers_and_shared_memory(use, warps):
    assert use.warps == warps


def test_resources_print_all_kernels_and_floors(run, monkeypatch, capsys):
    monkeypatch.setattr(resources.shutil, "which", lambda name: name)
    names = "score_batches", "step_tables"
    monkeypatch.setattr(
        resources,
        "used",
        lambda files, macros: dict.fromkeys([f"kernel of {files[-1]}", *names], resources.Used(40, 8, 4, 0)),
    )
    run("resources")
    rows = body_of(capsys.readouterr().out)
    assert ["losses, 10 classes", "kernel of losses", "40", "4", "8", "0", "48"] in rows
    assert ["letter (generated)", "step_tables"] in [row[:2] for row in rows]
    assert ["2", "40, 8", "40, 8", "4"] in [row[:4] for row in rows]
    monkeypatch.setattr(resources.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="resources needs nvcc"):
        run("resources")


def test_double_precision_spills_no_registers():
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc to compile CUDA text for a device")
    macros = resources.training_macros("float64", "uint8", 26, 256, 32)
    found = resources.used(cuda_train._FILES, macros)
    assert {"draw_structures", "score_batches", "step_tables"} <= set(found)
    assert {use.spilled for use in found.values()} == {0}


def test_all_that_needs_a_device_runs_in_one_call(backend, run, capsys, tmp_path):
    run("--all", "--output", str(tmp_path / "printed.txt"))
    text = capsys.readouterr().out
    assert (tmp_path / "printed.txt").read_text(encoding="utf-8") == text
    assert re.search(r"multiprocessors, .* of L2, driver of CUDA \d+\.\d, CuPy ", text)
    assert re.search(r"copies between 6 arrays of 1 MiB: [\d,]+ GB/s", text)
    for name in ("letter", "usps"):
        assert f"{name} (generated): differs from the CPU in losses by " in text
    assert text.count("repeated epochs are the same to the last bit") == 2
    header = next(line for line in text.splitlines() if line.startswith("| data | runs"))
    times = header.split(" | ")[3 : header.split(" | ").index("moved [MB]")]
    assert {"draw_structures [us]", "step_tables [us]", "step [us]"} <= set(times)
    measured = [row for row in body_of(text) if row[2] in ("beginning", "end")]
    assert [(*row[:3],) for row in measured] == [
        (f"{name} (generated)", runs, when)
        for name in ("letter", "usps")
        for runs in ("1", "4")
        for when in ("beginning", "end")
    ]
    assert all(float(cell) > 0 for row in measured for cell in row[3 : 3 + len(times)])
    assert "No population of 64 runs was measured, so no target is met or missed." in text
    assert "Measured: 3 trainings of TAN Subset, 1 for each K = 2, 5 and 8, 3 epochs, usps (generated, 60 rows)" in text
    assert "EXTRAPOLATION, not measured: 15,000 such trainings of 500 epochs" in text
    lines = appended(tmp_path / "results.jsonl")
    assert [(line["device"], line["set"].split()[0], line["seed"]) for line in lines] == [
        ("cuda", name, seed) for name in ("letter", "usps") for seed in (0, 1)
    ]


def shifted(found, part):
    """Return losses, tables and logits of which one is a little off in one run."""
    found = [array.copy() for array in found]
    found[part][1] *= 1.01
    return found


@pytest.mark.parametrize(("part", "name"), [(0, "losses"), (1, "tables"), (2, "logits")])
def test_a_device_that_differs_from_the_cpu_is_not_timed(backend, run, monkeypatch, capsys, part, name):
    trained, limits = measure.trained_on_device, dict.fromkeys(measure.ALLOWED, np.inf) | {name: measure.ALLOWED[name]}
    monkeypatch.setattr(measure, "ALLOWED", limits)
    monkeypatch.setattr(measure, "trained_on_device", lambda *arguments: shifted(trained(*arguments), part))
    with pytest.raises(SystemExit, match=r"the device is wrong\. It differs from the CPU in"):
        run("measure")
    assert "| data |" not in capsys.readouterr().out


def test_a_device_that_does_not_repeat_itself_is_not_timed(backend, run, monkeypatch, capsys):
    trained, factors = measure.trained_on_device, iter((1, 1 + 1e-12))
    monkeypatch.setattr(
        measure,
        "trained_on_device",
        lambda *arguments: [
            array.astype(float) * factor for factor in [next(factors)] for array in trained(*arguments)
        ],
    )
    with pytest.raises(SystemExit, match="not the same to the last bit"):
        run("measure")
    assert "| data |" not in capsys.readouterr().out


def test_targets_are_those_of_64_runs():
    def row(n_runs, when, sweep, step):
        return measure.Timed("letter", n_runs, when, {"step_tables": sweep}, step, 150_000_000, 50_000_000)

    # At 1,000 GB/s the sweep needs 150 us at least, and a step 200.
    rows = [row(16, "end", 9e9, 9e9), row(64, "beginning", 250.0, 590.0), row(64, "end", 310.0, 610.0)]
    assert rows[1].of_bandwidth(1000) == pytest.approx(0.6)
    assert rows[1].of_floor(1000) == pytest.approx(2.95)
    assert list(measure.verdicts(rows, 1000)) == [
        "met: letter, 64 runs, beginning: sweep at 60 % of copies, wanted 50 or more",
        "met: letter, 64 runs, beginning: step of 2.95 floors, wanted 3 or fewer",
        "MISSED: letter, 64 runs, end: sweep at 48 % of copies, wanted 50 or more",
        "MISSED: letter, 64 runs, end: step of 3.05 floors, wanted 3 or fewer",
    ]


def test_a_stopped_population_goes_on(backend, run, tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    options = "population", "--sets", "letter", "--population", "4", "--rows", "40"
    run(*options)
    whole, settled = appended(path), appended(path, ["wall"])
    cut_after(path, 2)
    run(*options)
    assert appended(path)[:2] == whole[:2]
    assert appended(path, ["wall"]) == settled
    assert [line["seed"] for line in settled] == [0, 1, 2, 3]
    capsys.readouterr()
    run(*options, "--device", "cpu")
    text = capsys.readouterr().out
    assert [(row[0], row[2].split(":")[0], row[3]) for row in body_of(text)] == [
        ("letter (generated, 40 rows)", device, "4") for device in ("cpu", "cuda")
    ]
    assert "times faster" in text
    assert "errors of 4 seeds, Kolmogorov-Smirnov p = " in text


def test_the_cpu_needs_no_device(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    run("population", "--sets", "usps", "--device", "cpu")
    assert [row[2:4] for row in body_of(capsys.readouterr().out)] == [["cpu: 2 threads", "2"]]


def lines_of(device, errors, wall, failure=""):
    return [
        {"device": device, "set": "letter", "seed": seed, "epochs": 500, "error": error, "wall": wall}
        | {"failure": failure, "machine": f"a {device}"}
        for seed, error in enumerate(errors)
    ]


def reported(run, path, lines, capsys):
    write(path, lines)
    run("report")
    return capsys.readouterr().out


def test_report_compares_devices(run, tmp_path, capsys):
    cpu = np.linspace(0.08, 0.12, 41)
    path = tmp_path / "results.jsonl"
    text = reported(run, path, lines_of("cpu", cpu, 10) + lines_of("cuda", cpu + 0.001, 0.5), capsys)
    assert "| letter | 500 | cpu: a cpu | 41 | 0 | 410.0 | 8.00, 9.00, 10.00, 11.00, 12.00 |" in text
    assert "letter, 500 epochs: the device is 20.0 times faster" in text
    assert "p = 1.000: no difference is seen" in text
    assert "seed by seed: +0.100 +- 0.000 points, at most 0.10; 0 are equal" in text
    worse = lines_of("cuda", cpu + 0.02, 0.5)
    text = reported(run, path, lines_of("cpu", cpu, 10) + worse[1:], capsys)
    assert "times are not compared, since only 40 of 41 seeds have both" in text
    assert "errors of 40 seeds" in text
    assert "the distributions DIFFER" in text
    text = reported(run, path, lines_of("cuda", [1.0, 1.0], 0.5, "training diverged"), capsys)
    assert "| letter | 500 | cuda: a cuda | 2 | 2 | 1.0 |" in text
    assert "only 0 of 2 seeds have both" in text
    assert "Kolmogorov" not in text


def test_report_wants_results(run):
    with pytest.raises(SystemExit, match="holds no trainings: run population first"):
        run("report")


def test_the_column_is_extrapolated_over_runs_and_epochs():
    # A hundredth of the runs, each a tenth as long.
    assert population.extrapolated(7, 150, 50) == pytest.approx(7 * 100 * 10)
    problem = population.fold("usps", SimpleNamespace(data=Path("nowhere"), rows=None))[1]
    runs = population.make_runs(problem, population.SUBSET.values(), range(2), 500)
    assert [run.parameters["n_epochs"] for run in runs] == [500] * 6
    assert len({run.parameters["random_state"] for run in runs}) == 6


@pytest.mark.parametrize("options", [["measure"], ["column"], ["population", "--device", "cuda"], ["--all"]])
def test_without_a_device_nothing_is_printed(run, monkeypatch, capsys, tmp_path, options):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit, match=r"device='cuda' needs CuPy: pip install 'tanlearn\[cuda12\]'"):
        run(*options)
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "results.jsonl").exists()


@pytest.mark.parametrize("options", [[], ["--all", "measure"], ["train"]])
def test_one_command_is_named(run, capsys, options):
    with pytest.raises(SystemExit):
        run(*options)
    assert re.search("name one of floor, measure|invalid choice: 'train'", capsys.readouterr().err)

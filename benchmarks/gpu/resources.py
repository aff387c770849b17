"""Registers, spills, shared memory and occupancy of all CUDA kernels, as nvcc compiles them, and floors of a step.

A multiprocessor of an H100 or H200 has 65,536 registers, which warps take in units of 256, 228 kB of shared memory, of
which a block takes 1 kB for itself, and 64 warps. The floor of a kernel is the time of its least memory traffic at the
nominal bandwidth of an H100. The command does not run any kernel.

Bytes of a step of R runs, in addition to those of measure.py: draw_structures reads and writes the logits and both of
their Adam moments (48 bytes per CPT), the noise, the perturbed logits and the gradients of choices of this step and of
the last one (36 bytes), and the deferred updates (16 bytes). gather_batches reads and writes the codes of the batch,
and draw_uniform writes a number per CPT. draw_trees reads the perturbed logits and the parents of all CPTs, and the
first CPT of each feature. It writes the selected CPTs.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.shared.reports import table_head, table_row
from tanlearn.kernels._cuda import BLOCK, WARP, program_text, row_packing, type_macros
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.kernels.cuda import train as cuda_train
from tanlearn.training.tan_state import State

from .measure import TARGET_RUNS, microseconds, problem, shortened, step_bytes, touched

ARCHITECTURE = "sm_90"
#: Registers, warps and shared memory of a multiprocessor, and the nominal bandwidth of an H100 in GB/s.
REGISTERS, WARPS, SHARED, BANDWIDTH = 65_536, 64, 228 * 1024, 3_350
_USED = re.compile(
    r"Compiling entry function '(\w+)'[^\n]*\n[^\n]*\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, "
    r"\d+ bytes spill loads\n[^\n]*Used (\d+) registers([^\n]*)"
)


class Used(NamedTuple):
    """Registers and memory of the threads and blocks of a kernel."""

    registers: int
    stack: int  # bytes per thread, spilled registers included
    spilled: int  # bytes per thread that are written
    shared: int  # bytes per block

    @property
    def warps(self):
        """Return the number of warps that a multiprocessor holds."""
        of_registers = REGISTERS // (-(-self.registers * WARP // 256) * 256 * (BLOCK // WARP))
        return min(of_registers, SHARED // (self.shared + 1024), WARPS * WARP // BLOCK) * (BLOCK // WARP)


def used(files, macros, architecture=ARCHITECTURE):
    """Compile a program, and return what its kernels use, by name."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.cu"
        source.write_text(program_text(*files), encoding="utf-8")
        command = ["nvcc", "-cubin", f"-arch={architecture}", "-std=c++17", "-Xptxas", "-v", *macros, str(source)]
        done = subprocess.run(
            [*command, "-o", str(Path(folder) / "kernels.cubin")], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"nvcc does not compile {', '.join(files)}: {done.stderr[:2000]}")
    found = {}
    for name, stack, stores, registers, rest in _USED.findall(done.stderr):
        shared = re.search(r"(\d+) bytes smem", rest)
        found[name] = Used(int(registers), int(stack), int(stores), int(shared.group(1)) if shared else 0)
    return found


def training_macros(real, code, n_classes, team, sample_team):
    """Return the compiler options of the training kernels."""
    sizes = {"N_CLASSES": n_classes, "PACK": row_packing(n_classes, real)[0], "TEAM": team, "SAMPLE_TEAM": sample_team}
    return *type_macros(REAL=real, CODE=code), *(f"-D{name}={value}" for name, value in sizes.items())


#: Programs besides the training kernels, each with its most frequent types.
OTHERS = {
    "counts of integers": (cuda_kernels._COUNTS, type_macros(WEIGHT="int64", CODE="uint8")),
    "counts of real weights": (cuda_kernels._COUNTS, type_macros(WEIGHT="float64", CODE="uint8")),
    "scores": (cuda_kernels._SCORES, type_macros(CODE="uint8", CELL="float64", SUM="float64")),
    "missing values": (("upward",), type_macros(CODE="uint8")),
    "one-dependence estimators": (("aode",), ()),
    "rows of estimators": (("pick_rows",), type_macros(CODE="uint8")),
    "normalization": (("mathematics",), type_macros(REAL="float64")),
    "losses, 10 classes": (("losses",), (*type_macros(REAL="float64"), "-DN_CLASSES=10")),
    "row weights": (("objective",), ()),
    "draws of reference": (cuda_kernels._DRAWS, ()),
    "steps of reference": (cuda_kernels._STEPS, type_macros(REAL="float32")),
}
#: Training kernels: reals, classes, threads per CPT and per sample.
TRAINING = [
    ("float32", 10, WARP, BLOCK),
    ("float32", 26, BLOCK, WARP),
    ("float32", 100, BLOCK, WARP),
    ("float32", 1000, BLOCK, WARP),
    ("float64", 26, BLOCK, WARP),
]

#: Numbers of classes of the second table: loops over classes are unrolled up to 128.
CLASSES = 2, 8, 26, 32, 64, 100, 128, 129, 1000


def print_classes(n_all):
    """Print how the training kernels depend on the number of classes, and the processor time of their compilation."""
    header = ["classes", *(f"score_batches, {real}: registers, stack [bytes]" for real in ("float32", "float64"))]
    print("", *table_head([*header, "step_tables, float32: spilled [bytes]", "compilation [s]"], left=()), sep="\n")
    for n_classes in n_all:
        scores, seconds, spilled = [], [], 0
        for real in ("float64", "float32"):
            before = os.times()
            team = (BLOCK, WARP) if n_classes > CLASSES[1] else (WARP, BLOCK)
            found = used(cuda_train._FILES, training_macros(real, "uint8", n_classes, *team))
            after = os.times()
            seconds.insert(0, sum(after[2:4]) - sum(before[2:4]))
            scores.insert(0, f"{found['score_batches'].registers}, {found['score_batches'].stack}")
            spilled = found["step_tables"].spilled
        print(
            table_row([f"{n_classes:,}", *scores, str(spilled), ", ".join(f"{one:.1f}" for one in seconds)]), flush=True
        )


def kernel_bytes(state, data, size, found, n_runs):
    """Return the least bytes that the kernels of a step move."""
    sweep, batch = step_bytes(found, data, size)
    n_tables, d = len(state.phi), data.n_features
    codes = size * d * data.codes.itemsize
    starts = size * d * np.dtype(np.int32).itemsize
    return {
        "gather_batches": n_runs * 2 * codes,
        "draw_uniform": n_runs * 4 * n_tables,
        "draw_structures": n_runs * (100 * n_tables + codes + starts),
        "draw_trees": n_runs * (16 * n_tables + 8 * d),
        "score_batches": n_runs * (batch - codes),
        "step_tables": n_runs * sweep,
    }


def resources(arguments):
    """Print the registers and memory of all kernels, their dependence on classes, and the floors of a step."""
    if shutil.which("nvcc") is None:
        raise SystemExit("resources needs nvcc, NVIDIA's compiler: install a CUDA toolkit.")
    header = ["program", "kernel", "registers", "spilled [bytes]", "stack [bytes]", "shared memory [bytes]"]
    print(*table_head([*header, "warps per multiprocessor"], left=(0, 1)), sep="\n")
    programs = dict(OTHERS)
    for real, n_classes, team, sample_team in TRAINING[: 1 if arguments.quick else None]:
        name = f"training, {real}, {n_classes} classes"
        programs[name] = cuda_train._FILES, training_macros(real, "uint8", n_classes, team, sample_team)
    for program, (files, macros) in programs.items():
        for kernel, use in sorted(used(files, macros).items()):
            numbers = use.registers, use.spilled, use.stack, use.shared, use.warps
            print(table_row([program, kernel, *(f"{number:,}" for number in numbers)]), flush=True)
    print_classes(CLASSES[: 1 if arguments.quick else None])
    print("", *table_head(["data", "kernel", "moved [MB]", "floor on an H100 [us]"], left=(0, 1)), sep="\n")
    for name in arguments.sets:
        label, data, sets, size = problem(name, arguments)
        state = State(data, sets, "uniform", "float32", np.random.default_rng(0))
        found = touched(state, shortened(arguments.short, size).temperature[0], size, np.random.default_rng(1))
        for kernel, moved in kernel_bytes(state, data, size, found, TARGET_RUNS).items():
            floor = microseconds(moved, arguments.bandwidth or BANDWIDTH)
            print(table_row([label, kernel, f"{moved / 1e6:.1f}", f"{floor:.1f}"]), flush=True)

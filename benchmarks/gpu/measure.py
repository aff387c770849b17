"""Bytes that a step of a population must move through a device's memory, and the times of the step and its kernels.

All runs are TAN Subset, K = 8, in float32. For R runs, a step moves at least R times the following data:

* sweep: theta, direction and second moment of drawn tables, read and written, and their gradient, written and read;
  theta and direction of tables that are not drawn but within the softmax's reach, read, and theta, written;
* batch: codes, starts of rows, the rows themselves (at most those of a table) and the gradients of scores, once each.

If the caches hold the population, fewer bytes may be moved. The gradients of choices read rows of tables through
caches; the floor leaves these out, and the table of floors has them in a separate column. "The end" is that of a short
training, whose rate of the logits is higher by the factor by which it is shorter than 500 epochs: after 40 epochs 5 %
of letter's undrawn cells are within reach and 16 % of usps', after 500 plain epochs 10 and 8 %. (The 10,000 generated
rows of mnist make fewer steps than its own rows would, and leave more within reach.)"""

from collections import Counter
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from unittest import mock

import numpy as np

from benchmarks.shared.reports import decimals, table_head, table_row
from benchmarks.shared.versions import VERSIONS
from benchmarks.speed.training import LOSS, SHAPES, load, sets_of
from tanlearn import Hybrid, JointNLL
from tanlearn.kernels._cuda import cupy, launch
from tanlearn.kernels.cuda import train as cuda_train
from tanlearn.kernels.train import NEGLIGIBLE_LOG_PROBABILITY
from tanlearn.training.cuda_population import CudaPopulation
from tanlearn.training.engines import FusedEngine
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.tan_state import State, plan_epoch
from tanlearn.training.training import DECAY, train

from .population import EPOCHS, card, require_device

REAL = 4
#: The kernel of the sweep, the size of the populations with targets, and the targets of the sweep and of a step.
SWEEP, TARGET_RUNS, LEAST_BANDWIDTH, MOST_FLOORS = "step_tables", 64, 0.5, 3.0
#: Steps before the timed one, so that the host is ahead of the device.
LEAD = 30
N_BUFFERS = 6
#: Losses and rate of the comparison with the CPU. Sharp losses magnify the rounding of scores, until even the two
#: engines of the CPU differ by several steps on usps. Limits are those of the largest relative difference of losses and
#: of the root mean square of the others, a hundredth of a step, as a few gradients are as small as Adam's epsilon.
GENTLE_LOSSES, RATE = [JointNLL(), Hybrid(trade_off=1, gamma=10, eta=1)], 0.01
ALLOWED = {"losses": 1e-5, "tables": 1e-4, "logits": 1e-4}


class Touched(NamedTuple):
    """Mean numbers of cells and tables that a step of a run reads or writes."""

    drawn: float  # cells of the drawn tables
    picked: float  # cells of the drawn tables in the rows of the batch's samples
    hopeful: float  # cells of other tables within reach of the softmax
    share: float  # hopeful, as a fraction of the cells that are not drawn
    n_choices: float  # tables within reach of the softmax


def touched(state, temperature, batch_size, rng, n_draws=50):
    """Return the cells and tables that steps touch at a temperature, by drawing structures."""
    sizes, group = np.diff(state.layout.offset), state.candidates.group
    has_choice = (np.diff(group) > 1)[state.candidates.child]
    rows = []
    for _ in range(n_draws):
        perturbed = state.perturb(rng.gumbel(size=len(sizes)).astype(np.float32))
        drawn = np.zeros(len(sizes), bool)
        drawn[state.draw(perturbed)] = True
        top = np.maximum.reduceat(perturbed, group[:-1])[state.candidates.child]
        hopeful = has_choice & ((perturbed - top) / temperature > NEGLIGIBLE_LOG_PROBABILITY)
        others = sizes[hopeful & ~drawn].sum()
        picked = np.minimum(sizes[drawn], batch_size * state.layout.n_classes).sum()
        rows.append((sizes[drawn].sum(), picked, others, others / max(1, sizes[~drawn].sum()), hopeful.sum()))
    return Touched(*np.mean(rows, axis=0).tolist())


def step_bytes(found, data, batch_size):
    """Return the bytes that a run's step must move for the sweep and for the batch."""
    sweep = REAL * (8 * found.drawn + 3 * found.hopeful)
    places = data.n_features * batch_size * (data.codes.itemsize + np.dtype(np.int32).itemsize)
    return sweep, places + REAL * (found.picked + batch_size * data.n_classes)


def problem(name, arguments):
    """Return label, rows, candidates and batch size: the published training part, or generated rows of its shape."""
    data, origin = load(name, arguments.data / "discretized")
    data = data.take(slice(arguments.rows))
    return f"{name} ({origin})", data, sets_of(data), SHAPES[name][3]


def shortened(n_epochs, batch_size):
    """Return settings of a short training whose logits can move as far as in all epochs of the protocol."""
    rates = {"learning_rate": 0.01, "structure_learning_rate": 1e-3 * EPOCHS / n_epochs}
    return TrainingSettings(n_epochs=n_epochs, batch_size=batch_size, **rates)


def floor(arguments):
    """Print the bytes of steps and, with a bandwidth, their smallest time."""
    header = ["data", "cells", "tables", "runs", "when", "within reach [% of undrawn cells]"]
    header += ["tables and moments [MB]", "sweep [MB]", "batch [MB]", "(choices, in caches [MB])", "floor [us]"]
    print(*table_head(header, left=(0, 4)), sep="\n")
    for name in arguments.sets:
        label, data, sets, size = problem(name, arguments)
        state, rng = State(data, sets, "uniform", "float32", np.random.default_rng(0)), np.random.default_rng(1)
        settings = shortened(arguments.short, size)
        found = {"beginning": touched(state, settings.temperature[0], size, rng)}
        state.move_to(*train(data, sets, LOSS, settings, np.random.default_rng(0)).parameters)
        found["end"] = touched(state, settings.temperature[1], size, rng)
        n_cells = state.layout.n_cells
        for n_runs in arguments.runs:
            for when, run in found.items():
                moved = n_runs * np.array(step_bytes(run, data, size))
                choices = n_runs * run.n_choices * size * data.n_classes * REAL
                least = f"{microseconds(moved.sum(), arguments.bandwidth):.1f}" if arguments.bandwidth else ""
                cells = [label, f"{n_cells:,}", f"{sets.n_tables:,}", f"{n_runs}", when, f"{100 * run.share:.0f}"]
                cells += [f"{3e-6 * REAL * n_cells * n_runs:.2f}", *(f"{one / 1e6:.3f}" for one in moved)]
                print(table_row([*cells, f"({choices / 1e6:.3f})", least]), flush=True)


def microseconds(n_bytes, bandwidth):
    """Return the time of moving bytes at a bandwidth in GB/s."""
    return n_bytes / bandwidth / 1e3


def elapsed(stream, lead, calls, repeats):
    """Return the median microseconds of every call, in sequence after ``lead``, over many repeats.

    While the device works on ``lead``, the host gets ahead of it, so that times exclude the launches of the host.
    """
    rows = []
    for _ in range(repeats + 1):
        events = [cupy().cuda.Event() for _ in range(len(calls) + 1)]
        lead()
        events[0].record(stream)
        for call, event in zip(calls, events[1:], strict=True):
            call()
            event.record(stream)
        rows.append(events)
    stream.synchronize()
    clock = cupy().cuda.get_elapsed_time
    return 1000 * np.median([[clock(*pair) for pair in pairwise(events)] for events in rows[1:]], axis=0)


def copy_bandwidth(stream, mebibytes, repeats):
    """Return GB/s, read plus written, of copies of arrays that are too large for caches."""
    arrays = [cupy().full(2**18 * mebibytes, number + 0.5, np.float32) for number in range(N_BUFFERS)]
    copies = [partial(cupy().copyto, after, before) for before, after in pairwise([arrays[-1], *arrays])]
    return 2 * arrays[0].nbytes / np.median(elapsed(stream, copies[0], copies, repeats)) / 1e3


def trained_on_cpu(data, sets, size, temperatures):
    """Return losses, tables and logits of one run per loss."""
    found = []
    for run, loss in enumerate(GENTLE_LOSSES):
        state = State(data, sets, "uniform", "float32", np.random.default_rng(run))
        engine = FusedEngine(state, data, np.ones(data.n_samples, np.float32), loss, size)
        rng = np.random.default_rng(run)
        plans = [plan_epoch(data.n_samples, size, sets.n_tables, rng) for _ in temperatures]
        losses = [engine.epoch(plan, (RATE, RATE), heat) for plan, heat in zip(plans, temperatures, strict=True)]
        found.append((losses, state.theta, state.phi))
    return [np.array(part) for part in zip(*found, strict=True)]


def trained_on_device(data, sets, size, temperatures):
    """Return losses, tables and logits of the same runs, trained at once on the device."""
    n_runs = len(GENTLE_LOSSES)
    states = [State(data, sets, "uniform", "float32", np.random.default_rng(run)) for run in range(n_runs)]
    population = CudaPopulation(states, data, np.ones(data.n_samples, np.float32), GENTLE_LOSSES, size)
    rngs, losses = [np.random.default_rng(run) for run in range(n_runs)], []
    for heat in temperatures:
        plans = [plan_epoch(data.n_samples, size, sets.n_tables, rng, "cuda") for rng in rngs]
        population.start_epoch(plans, [(RATE, RATE)] * n_runs, [heat] * n_runs)
        losses.append(population.finish_epoch())
    for run in range(n_runs):
        population.pull(run)
    return [np.transpose(losses), *(np.array([getattr(state, name) for state in states]) for name in ("theta", "phi"))]


def check(label, data, sets, size):
    """Compare twelve steps with the CPU and with a repetition; end the command if they differ."""
    arguments = data.take(slice(4 * size)), sets, size, (2.0, 1.0, 0.5)
    expected, found, again = trained_on_cpu(*arguments), trained_on_device(*arguments), trained_on_device(*arguments)
    differences = {"losses": np.abs(found[0] / expected[0] - 1).max()}
    for name, a, b in zip(("tables", "logits"), found[1:], expected[1:], strict=True):
        differences[name] = np.sqrt(np.square(a - b).mean(axis=1)).max()
    text = ", ".join(f"{name} by {differences[name]:.1g} ({allowed:g} allowed)" for name, allowed in ALLOWED.items())
    if not all(differences[name] <= allowed for name, allowed in ALLOWED.items()):  # nan is not, either
        raise SystemExit(f"{label}: the device is wrong. It differs from the CPU in {text}.")
    if any(a.tobytes() != b.tobytes() for a, b in zip(found, again, strict=True)):
        raise SystemExit(f"{label}: the device is wrong. Repeated epochs are not the same to the last bit.")
    print(f"{label}: differs from the CPU in {text}; repeated epochs are the same to the last bit", flush=True)


class Timed(NamedTuple):
    """Times of kernels and of a step of a population, and bytes of sweep and batch."""

    label: str
    n_runs: int
    when: str
    kernels: dict
    step: float
    sweep: float
    batch: float

    def of_bandwidth(self, bandwidth):
        """Return the bandwidth of the sweep relative to copies."""
        return microseconds(self.sweep, bandwidth) / self.kernels[SWEEP]

    def of_floor(self, bandwidth):
        """Return the time of a step relative to its floor."""
        return self.step / microseconds(self.sweep + self.batch, bandwidth)


def recorded(work):
    """Call a function, and return its launches of training kernels."""
    calls = []

    def keep(*arguments, **options):
        calls.append(partial(launch, *arguments, **options))
        launch(*arguments, **options)

    with mock.patch.object(cuda_train, "launch", keep):
        work()
    return calls


def again(population):
    """Repeat the last epoch of a population, launch by launch instead of by graphs."""
    with population._stream:
        for _ in range(population._epoch.n_blocks):
            population._epoch.run_block()
        population._epoch.end()
    population._stream.synchronize()


def captured(stream, calls):
    """Return the graph of launches."""
    stream.begin_capture()
    for call in calls:
        call()
    return stream.end_capture()


def timed_steps(name, n_runs, arguments, stream):
    """Yield steps of a population at the beginning and at the end of a short training."""
    label, data, sets, size = problem(name, arguments)
    settings = shortened(max(3, arguments.short), size)
    rates = settings.schedule(settings.learning_rate, settings.learning_rate * DECAY)
    temperatures = settings.schedule(*settings.temperature)
    state = State(data, sets, "uniform", "float32", np.random.default_rng(0))
    population = CudaPopulation([state] * n_runs, data, np.ones(data.n_samples, np.float32), [LOSS] * n_runs, size)
    rngs = [np.random.default_rng(run) for run in range(n_runs)]

    def epoch(number, structure_rate=settings.structure_learning_rate):
        plans = [plan_epoch(data.n_samples, size, sets.n_tables, rng, "cuda") for rng in rngs]
        population.start_epoch(plans, [(rates[number], structure_rate)] * n_runs, [temperatures[number]] * n_runs)
        if not np.isfinite(population.finish_epoch()).all():
            raise SystemExit(f"{label}: training diverged in epoch {number + 1}.")

    epoch(0)
    calls = recorded(partial(again, population))
    n_steps = data.n_samples // size
    names = [call.args[1] for call in calls]
    of_step = {}  # launches of the first block by step, their first argument after the number of workers
    for call in calls[names.index("draw_structures") : names.index("next_block")]:
        of_step.setdefault(int(call.args[3]), []).append(call)
    last = min(LEAD, len(of_step) - 1)
    begin = calls[: names.index("draw_structures")]
    with stream:
        graph = captured(stream, calls)
        lead = captured(stream, [*begin, *(call for step in range(last) for call in of_step[step])])
    for when, first, end in (("beginning", 1, 2), ("end", 2, settings.n_epochs)):
        for number in range(first, end - 1):
            epoch(number)
        epoch(end - 1, 0.0)  # its steps are repeated below, and the rate 0 keeps the distribution of the draws
        moved = n_runs * np.array(step_bytes(touched(state, temperatures[end - 1], size, rngs[0]), data, size))
        with stream:
            times = elapsed(stream, partial(lead.launch, stream), of_step[last], arguments.repeats)
            (whole,) = elapsed(stream, lambda: None, [partial(graph.launch, stream)], arguments.repeats)
        kernels = Counter()
        for call, time in zip(of_step[last], times.tolist(), strict=True):
            kernels[call.args[1]] += time
        yield Timed(label, n_runs, when, kernels, whole / n_steps, *moved.tolist())


def measure(arguments):
    """Check the results of kernels, then print the times of kernels and steps, and whether they meet the targets."""
    require_device()
    print(f"{card()}\n{VERSIONS}")
    stream = cupy().cuda.Stream()
    with stream:
        bandwidth = copy_bandwidth(stream, arguments.mebibytes, arguments.repeats)
        nothing = elapsed(stream, lambda: None, [lambda: None], arguments.repeats)[0]
    print(f"copies between {N_BUFFERS} arrays of {arguments.mebibytes} MiB: {bandwidth:,.0f} GB/s read and written")
    print(f"time between two events without a kernel, which each kernel's time includes: {nothing:.1f} us")
    for name in arguments.sets:
        check(*problem(name, arguments))
    rows = []
    for name in arguments.sets:
        for n_runs in arguments.runs:
            for row in timed_steps(name, n_runs, arguments, stream):
                if not rows:
                    columns = [*(f"{kernel} [us]" for kernel in row.kernels), "step [us]", "moved [MB]", "floor [us]"]
                    columns += ["step / floor", "sweep [% of copies]"]
                    print("", *table_head(["data", "runs", "when", *columns], left=(0, 2)), sep="\n")
                rows.append(row)
                times = [f"{time:.1f}" for time in (*row.kernels.values(), row.step)]
                moved = row.sweep + row.batch
                floors = [moved / 1e6, microseconds(moved, bandwidth), row.of_floor(bandwidth)]
                cells = [row.label, f"{n_runs}", row.when, *times, *map(decimals, floors)]
                print(table_row([*cells, f"{100 * row.of_bandwidth(bandwidth):.0f}"]), flush=True)
    print("\n".join(verdicts(rows, bandwidth)))


def verdicts(rows, bandwidth):
    """Yield one line per target."""
    rows = [row for row in rows if row.n_runs == TARGET_RUNS]
    if not rows:
        yield f"No population of {TARGET_RUNS} runs was measured, so no target is met or missed."
    for row in rows:
        share, times = row.of_bandwidth(bandwidth), row.of_floor(bandwidth)
        for is_met, what in (
            (
                share >= LEAST_BANDWIDTH,
                f"sweep at {100 * share:.0f} % of copies, wanted {100 * LEAST_BANDWIDTH:.0f} or more",
            ),
            (times <= MOST_FLOORS, f"step of {times:.2f} floors, wanted {MOST_FLOORS:g} or fewer"),
        ):
            yield f"{'met' if is_met else 'MISSED'}: {row.label}, {row.n_runs} runs, {row.when}: {what}"

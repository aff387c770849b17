"""The pages about microcontrollers: verdicts, one table of all models, details, and how they were measured.

    python -m benchmarks.embedded.report    # writes README.md and details.md from the results

The command ``benchmarks.embedded.cycles`` measures the results on microcontrollers, and ``benchmarks.embedded`` those
on a computer. Both append them to files in ``results``.
"""

import textwrap
from pathlib import Path

from benchmarks import command_line
from benchmarks.embedded.method import COMPUTER, INTRODUCTION, MADE, MICROCONTROLLERS
from benchmarks.embedded.programs import PARTS
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.results import read

HERE = Path(__file__).parent
BEST, UNPACKED, EIGHT, FLOATS = "TAN, 4 bits", "TAN, 4 bits, a byte each", "TAN, 8 bits", "TAN, 32-bit floats"
SMALL = ("TAN, 2 bits", "TAN, 1 bit")
NET, REGRESSION = "net of 48 rectifiers, 8 bits", "logistic regression, 8 bits"
TREE = "tree of 1,000 leaves, by emlearn"
COLUMNS = ["error [%]", "flash [bytes]", "RAM [bytes]", "cycles -Os", "cycles -O2", "-Os [µs]", "-Os [µJ]"]
COMPUTER_COLUMNS = ("x86_64", "AVR", "Cortex-M0+")


class Costs:
    """Lines of results by microcontroller and model; the last line counts if a model was measured again."""

    def __init__(self, lines):
        self._lines = {(line["microcontroller"], line["model"]): line for line in lines}
        self.models = list(dict.fromkeys(line["model"] for line in lines))
        self.parts = [part for part in PARTS if any(name == part.name for name, _ in self._lines)]

    def line(self, part, model):
        """Return the line of a model on a microcontroller, or None if it is not measured or does not fit."""
        line = self._lines.get((part.name, model))
        return None if line is None or "failure" in line else line

    def failure(self, part, model):
        """Return why a model does not fit a microcontroller, or an empty string."""
        return self._lines.get((part.name, model), {}).get("failure", "")

    def error(self, model):
        """Return the error of a model in %."""
        return next(line["error"] for (_, name), line in self._lines.items() if name == model)

    def microseconds(self, part, model):
        """Return the time of a prediction at the clock of a microcontroller, compiled for size."""
        return self.line(part, model)["cycles"][0] / part.megahertz

    def flash(self, model):
        """Return the bytes of flash on the first microcontroller."""
        return self.line(self.parts[0], model)["flash"]

    def ratios(self, model, other):
        """Return the lowest and the highest ratio of the cycles of two models, compiled for size."""
        found = [self.line(part, model)["cycles"][0] / self.line(part, other)["cycles"][0] for part in self.parts]
        return min(found), max(found)

    def has(self, *models):
        """Return whether models are measured on every microcontroller."""
        return bool(self.parts) and all(self.line(part, model) for part in self.parts for model in models)


def times(low, high):
    """Return a range of ratios in words."""
    return f"{low:.1f} to {high:.1f} times" if f"{low:.1f}" != f"{high:.1f}" else f"{low:.1f} times"


def kilobytes(n_bytes):
    """Return bytes in kB."""
    return f"{n_bytes / 1000:.3g} kB"


def summary(costs):
    """Return the verdicts in sentences."""
    if not costs.has(BEST):
        return "The TAN of four bits is not measured yet."
    spent = ", ".join(f"{costs.microseconds(part, BEST) / 1000:.2f} ms on {part.name}" for part in costs.parts)
    text = [
        f"A TAN of four bits has an error of {costs.error(BEST):.2f} % on letter in {kilobytes(costs.flash(BEST))} of "
        f"flash, and takes {spent} per prediction (at 16 MHz, compiled with -Os)."
    ]
    if costs.has(FLOATS):
        text.append(
            f"Floats lower the error by {costs.error(BEST) - costs.error(FLOATS):.2f} points, need "
            f"{costs.flash(FLOATS) / costs.flash(BEST):.1f} times as much flash, and take "
            f"{times(*costs.ratios(FLOATS, BEST))} as long."
        )
    if costs.has(NET, REGRESSION):
        listed = " and ".join(
            f"a {words} has an error of {costs.error(model):.1f} % in {kilobytes(costs.flash(model))} "
            f"({times(*costs.ratios(model, BEST))} as long)"
            for model, words in ((NET, "neural network of 8 bits"), (REGRESSION, "logistic regression of 8 bits"))
        )
        text.append(f"Compared with the TAN of four bits, smaller models are less accurate: {listed}.")
    if costs.has(TREE):
        low, high = costs.ratios(BEST, TREE)
        text.append(
            f"The decision tree of 1,000 leaves has an error of {costs.error(TREE):.1f} %, and is {low:.0f} to "
            f"{high:.0f} times as fast as the TAN. Use it if time or energy matters most."
        )
    return paragraph(" ".join(text))


def not_beaten(costs):
    """Return the models that no other beats in error and flash on the first microcontroller, the smallest first."""
    part = costs.parts[0]
    found = sorted(
        (costs.line(part, model)["flash"], costs.error(model), model)
        for model in costs.models
        if costs.line(part, model)
    )
    return [model for k, (_, error, model) in enumerate(found) if all(error < other for _, other, _ in found[:k])]


def conclusions(costs):
    """Return further verdicts as a list."""
    said = []
    if costs.parts:
        listed = "; ".join(not_beaten(costs))
        said.append(
            f"*Size and error*: on {costs.parts[0].name}, no model has less flash and a lower error than these: "
            f"{listed}."
        )
    if costs.has(BEST, UNPACKED):
        low, high = costs.ratios(UNPACKED, BEST)
        said.append(
            f"*Packing*: entries of one byte take {100 * low:.0f} to {100 * high:.0f} % of the time of packed "
            f"entries, and {costs.flash(UNPACKED) / costs.flash(BEST):.1f} times as much flash. Use entries of one "
            "byte if enough flash is available."
        )
    if costs.has(BEST, UNPACKED, EIGHT):
        said.append(
            f"*Eight bits* lower the error by {costs.error(BEST) - costs.error(EIGHT):.2f} points, and take "
            f"{times(*costs.ratios(EIGHT, UNPACKED))} the cycles of four-bit entries that are stored in one byte each."
        )
    if costs.has(*SMALL, NET, REGRESSION):
        sizes = "; ".join(f"{m}: {costs.error(m):.1f} % in {kilobytes(costs.flash(m))}" for m in SMALL)
        worse = [
            model
            for model in SMALL
            if any(
                costs.error(o) < costs.error(model) and costs.flash(o) < costs.flash(model) for o in (NET, REGRESSION)
            )
        ]
        verdict = (
            f"A smaller model is more accurate than {' and '.join(worse)}." if worse else "No smaller model is better."
        )
        said.append(f"*Small TANs* ({sizes}): {verdict}")
    return "\n".join(textwrap.fill(f"- {one}", 120, subsequent_indent="  ", break_on_hyphens=False) for one in said)


def overview(costs):
    """Return one row per model: error, flash and RAM on the first microcontroller, and the time on each."""
    rows = []
    for model in costs.models:
        first = costs.line(costs.parts[0], model)
        spent = [f"{costs.microseconds(part, model):,.0f}" if costs.line(part, model) else "-" for part in costs.parts]
        sizes = [f"{first['flash']:,}", f"{first['ram']:,}"] if first else ["-", "-"]
        note = f" (on {first['on']})" if first and "on" in first else ""
        rows.append([f"{model}{note}", f"{costs.error(model):.2f}", *sizes, *spent])
    header = [
        "model",
        "error [%]",
        "AVR flash [bytes]",
        "AVR RAM [bytes]",
        *(f"{part.name} [µs]" for part in costs.parts),
    ]
    return markdown_table(header, rows)


def part_table(costs, part):
    """Return all costs on a microcontroller."""
    rows = []
    for model in costs.models:
        line = costs.line(part, model)
        if line is None:
            if costs.failure(part, model):
                cells = [f"{costs.error(model):.2f}", *["-"] * (len(COLUMNS) - 1)]
                rows.append([f"{model}: {costs.failure(part, model)}", *cells])
            continue
        note = f" (on {line['on']})" if "on" in line else ""
        sizes = [
            f"{line['error']:.2f}",
            f"{line['flash']:,}",
            f"{line['ram']:,}",
            *(f"{n:,.0f}" for n in line["cycles"]),
        ]
        energy = line["cycles"][0] * part.nanojoules / 1000
        rows.append([f"{model}{note}", *sizes, f"{costs.microseconds(part, model):,.0f}", f"{energy:.2g}"])
    return markdown_table(["model", *COLUMNS], rows)


def computer_table(lines):
    """Return the table of the models on a computer; the last line of a model counts."""
    rows = []
    for line in {line["model"]: line for line in lines}.values():
        pairs = (line["bytes"].get(name) for name in COMPUTER_COLUMNS)
        sizes = [", ".join(f"{n:,}" for n in pair) if pair else "-" for pair in pairs]
        rows.append([line["model"], f"{line['error']:.2f}", *sizes, *(f"{n:,.0f}" for n in line["nanoseconds"])])
    header = [
        "model",
        "error [%]",
        *(f"{name} code, tables [bytes]" for name in COMPUTER_COLUMNS),
        "-Os [ns]",
        "-O2 [ns]",
    ]
    return markdown_table(header, rows)


def write_report(lines, on_computer, folder):
    """Write the summary and the page of details."""
    costs = Costs(lines)
    if not costs.parts:
        raise SystemExit("nothing is finished: the command benchmarks.embedded.cycles does it.")
    sections = [
        "# Microcontrollers",
        summary(costs),
        overview(costs),
        conclusions(costs),
        """All costs on each microcontroller and on a computer are on [a separate page](details.md).""",
        f"## How it was measured\n\n{paragraph(INTRODUCTION)}\n\n{MICROCONTROLLERS}",
        MADE,
    ]
    write_sections(folder / "README.md", sections)
    details = [
        "# Microcontrollers: details",
        "The [summary](README.md) contains the main results, and explains models, bytes, cycles and energy.",
    ]
    details += [f"## {part.name}\n\n{part_table(costs, part)}" for part in costs.parts]
    details.append(f"## Results on a computer\n\n{computer_table(on_computer)}\n\n{COMPUTER}" if on_computer else "")
    write_sections(folder / "details.md", details)


def main(argv=None):
    """Parse the command line and write the report."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of results")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of README.md and details.md")
    arguments = parser.parse_args(argv)
    lines, on_computer = (read(arguments.results / f"{name}.jsonl") for name in ("cycles", "computer"))
    write_report(lines, on_computer, arguments.output)


if __name__ == "__main__":
    main()

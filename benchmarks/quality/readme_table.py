"""Write the learners' table of the README: python -m benchmarks.quality.readme_table

Runs every learner of the registry on the digits as `tanlearn compare --learners all` does, on one thread.
"""

import os
import platform
import sys

from benchmarks import ROOT, command_line
from tanlearn.baselines import LEARNERS
from tanlearn.comparison import HEADERS, best, cells, compare, summary
from tanlearn.data.datasets import load_digits

#: What the errors of learners with settings to choose are not.
CHOSEN_HERE = (
    "Digits is among the sets on which the defaults of gradient TAN and of HYB were chosen "
    "([how they do on ten](benchmarks/quality/defaults.md)), and the only set here: on other data expect less of them."
)
README = ROOT / "README.md"
BEGIN, END = "<!-- learners:begin -->\n", "<!-- learners:end -->"


def table(results, n_epochs):
    """Return the table in Markdown and a paragraph on how it was made."""
    columns = ["learner", "what it does", "described by", *HEADERS[1:]]
    rows = [columns, ["---"] * 3 + ["---:"] * (len(HEADERS) - 1)]
    winners = best(results)
    for result in results:
        if result.failure is not None:
            raise SystemExit(f"{result.learner} failed: {result.failure}")
        learner = LEARNERS[result.learner]
        name, error, *others = cells(result)
        error = f"**{error}**" if result in winners else error
        rows.append([name, learner.description, learner.citation, error, *others])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    how = (
        f"{summary(results)} scikit-learn's bundled digits, one stratified split, seed 0, {n_epochs} epochs for HYB, "
        f"defaults throughout: a difference of a point or two may be chance. {CHOSEN_HERE} One thread of a "
        f"{os.cpu_count()}-core {platform.machine()} machine. Made by `python -m benchmarks.quality.readme_table`."
    )
    return "\n".join([*lines, "", how, ""])


def with_table(text, table):
    """Return the text with the table between the markers."""
    before, found_begin, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not (found_begin and found_end):
        raise ValueError(f"the README must hold the lines {BEGIN.strip()} and {END}, in this order.")
    return f"{before}{BEGIN}{table}{END}{after}"


def main():
    """Compare all learners and rewrite the README."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--epochs", type=int, default=100)
    arguments = parser.parse_args()

    def progress(learner, share):
        if share is None:
            print(learner, file=sys.stderr, flush=True)

    results = compare(load_digits(), list(LEARNERS), n_epochs=arguments.epochs, progress=progress)
    text = with_table(README.read_text(encoding="utf-8"), table(results, arguments.epochs))
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

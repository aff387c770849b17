"""Networks in files: how long other programs' formats take to read and to write."""

import tempfile
from pathlib import Path

import numpy as np

from tanlearn import read_bif, read_xmlbif, write_bif, write_xmlbif

from .shapes import n_rows


def network(n_states=12, n_distinct=5000, n_features=None):
    """Return BIF of a chain with two parents per feature; by default 100,000 rows, 1.2 million numbers of 6 digits."""
    n_features = n_features or n_rows(1_200) // 20  # 60; fewer in tests, as there are fewer rows
    rng = np.random.default_rng(0)
    states = [f"state_{i}" for i in range(n_states)]
    rows = rng.dirichlet(np.full(n_states, 0.5), n_distinct // n_states)
    rows = [", ".join(f"{p:.6f}" for p in row) for row in rows]
    names = ["class", *(f"x{i}" for i in range(n_features))]
    lines = ["network generated {", "}"]
    lines += [f"variable {name} {{\n  type discrete [ {n_states} ] {{ {', '.join(states)} }};\n}}" for name in names]
    lines.append(f"probability ( class ) {{\n  table {rows[0]};\n}}")
    for i, name in enumerate(names[1:], start=1):
        given = ["class", *names[max(1, i - 2) : i]]
        lines.append(f"probability ( {name} | {', '.join(given)} ) {{")
        for values in np.ndindex(*[n_states] * len(given)):
            pick = rng.integers(len(rows))
            lines.append(f"  ({', '.join(states[value] for value in values)}) {rows[pick]};")
        lines.append("}")
    return "\n".join(lines)


class Networks:
    """Reading and writing a large network."""

    formats = {"BIF": (write_bif, read_bif), "XMLBIF": (write_xmlbif, read_xmlbif)}
    params, param_names = [list(formats)], ["format"]
    timeout = 300

    def setup(self, format):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "generated.bif")
        path.write_text(network())
        self.model, self.path = read_bif(path), Path(self.folder.name, "network")
        self.write, self.read = self.formats[format]
        self.write(self.model, self.path)
        if format == "BIF":  # as it was generated, without tanlearn's properties
            self.path = path

    def teardown(self, format):
        self.folder.cleanup()

    def time_read(self, format):
        self.read(self.path)

    def time_write(self, format):
        self.write(self.model, Path(self.folder.name, "written"))

    def peakmem_read(self, format):
        self.read(self.path)

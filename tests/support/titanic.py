"""Titanic passengers for examples: scikit-learn contains the table for its own tests."""

import csv
import gzip
from importlib.resources import files
from pathlib import Path

SOURCE = files("sklearn") / "datasets" / "tests" / "data" / "openml" / "id_40945" / "data-v1-dl-16826755.arff.gz"


def write_titanic(path: Path) -> None:
    """Write the table as a CSV file: 1309 passengers, 14 columns, empty fields for missing values."""
    with SOURCE.open("rb") as file:
        header, _, rows = gzip.decompress(file.read()).decode("utf-8").partition("@data\n")
    names = [line.split()[1].strip("'") for line in header.splitlines() if line.startswith("@attribute")]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in csv.reader(rows.splitlines(), escapechar="\\"):
            writer.writerow(["" if value == "?" else value for value in row])

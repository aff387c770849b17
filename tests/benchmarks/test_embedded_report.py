"""The pages about microcontrollers: verdicts that follow from results, and the tables of both pages."""

import pytest
from support.results_files import write

from benchmarks.embedded import report
from benchmarks.embedded.programs import AVR, M0


def line(part, model, error, flash, cycles, **more):
    """Return a line of results."""
    sizes = {"flash": flash, "ram": 50, "cycles": [cycles, cycles - 1000]}
    return {"microcontroller": part.name, "model": model, "error": error, **sizes, **more}


def lines():
    """Return results of some models on two microcontrollers, of which the second takes half of the cycles."""
    found = [
        ("TAN, 1 bit", 20.0, 6000, 20_000),
        ("TAN, 2 bits", 14.0, 12_000, 20_000),
        (report.BEST, 10.0, 20_000, 16_000),
        (report.UNPACKED, 10.0, 40_000, 8000),
        (report.EIGHT, 9.5, 42_000, 10_000),
        (report.FLOATS, 9.0, 180_000, 64_000),
        (report.REGRESSION, 15.0, 4000, 12_000),
        (report.NET, 12.0, 9000, 48_000),
        (report.TREE, 13.0, 20_500, 2000),
    ]
    return [
        line(part, model, error, flash, cycles // (1 + (part is M0)))
        for part in (AVR, M0)
        for model, error, flash, cycles in found
    ]


def test_sentences_follow_from_results():
    def sentences(changed=()):
        return " ".join(report.summary(report.Costs([*lines(), *changed])).split())

    text = sentences()
    assert text == (
        "A TAN of four bits has an error of 10.00 % on letter in 20 kB of flash, and takes 1.00 ms on ATmega1284P, "
        "0.50 ms on Cortex-M0+ per prediction (at 16 MHz, compiled with -Os). Floats lower the error by 1.00 points, "
        "need 9.0 times as much flash, and take 4.0 times as long. Compared with the TAN of four bits, smaller "
        "models are less accurate: a neural network of 8 bits has an error of 12.0 % in 9 kB (3.0 times as long) and "
        "a logistic regression of 8 bits has an error of 15.0 % in 4 kB (0.8 times as long). The decision tree of "
        "1,000 leaves has an error of 13.0 %, and is 8 to 8 times as fast as the TAN. Use it if time or energy "
        "matters most."
    )
    text = sentences([line(M0, report.FLOATS, 9.0, 180_000, 80_000)])  # measured again: the last line counts
    assert "and take 4.0 to 10.0 times as long." in text
    assert report.summary(report.Costs(lines()[:2])) == "The TAN of four bits is not measured yet."


def test_conclusions_follow_from_results():
    text = " ".join(report.conclusions(report.Costs(lines())).split())
    assert (
        "no model has less flash and a lower error than these: logistic regression, 8 bits; "
        "net of 48 rectifiers, 8 bits; TAN, 4 bits;" in text
    )
    assert "entries of one byte take 50 to 50 % of the time of packed entries, and 2.0 times as much flash." in text
    assert "*Eight bits* lower the error by 0.50 points, and take 1.2 times the cycles" in text
    assert "A smaller model is more accurate than TAN, 2 bits and TAN, 1 bit." in text
    better = [line(part, "TAN, 1 bit", 11.0, 6000, 20_000) for part in (AVR, M0)]
    text = " ".join(report.conclusions(report.Costs([*lines(), *better])).split())
    assert "A smaller model is more accurate than TAN, 2 bits." in text


def test_pages_have_one_row_per_model(tmp_path):
    found = [*lines(), line(AVR, "TAN, 12 bits", 9.2, 200_000, 30_000, on="ATmega2560")]
    found.append({"microcontroller": M0.name, "model": "TAN, 12 bits", "error": 9.2, "failure": "does not fit"})
    write(tmp_path / "cycles.jsonl", found)
    measured = {"bytes": {"x86_64": [283, 20_640]}, "nanoseconds": [490.4, 578.0]}
    write(tmp_path / "computer.jsonl", [{"model": "TAN", "error": 9.67, **measured}])
    report.main(["--results", str(tmp_path), "--output", str(tmp_path)])
    text, details = ((tmp_path / name).read_text(encoding="utf-8") for name in ("README.md", "details.md"))
    assert "| TAN, 4 bits | 10.00 | 20,000 | 50 | 1,000 | 500 |" in text
    assert "| TAN, 12 bits (on ATmega2560) | 9.20 | 200,000 | 50 | 1,875 | - |" in text
    assert "| TAN, 4 bits | 10.00 | 20,000 | 50 | 16,000 | 15,000 | 1,000 | 18 |" in details
    assert "| TAN, 12 bits: does not fit | 9.20 | - | - | - | - | - | - |" in details
    assert "| TAN | 9.67 | 283, 20,640 | - | - | 490 | 578 |" in details
    with pytest.raises(SystemExit, match="nothing is finished"):
        report.main(["--results", str(tmp_path / "none"), "--output", str(tmp_path)])

"""``tanlearn warmup``: compile kernels before they are needed."""

import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")


def test_learners_are_warmed_up_by_name(run):
    done = run("warmup", "NB ML", "TAN-CMI ML")
    assert (done.exit_code, done.stdout) == (0, "The kernels of 2 learners are compiled.\n")


def test_unknown_learners_are_named(run):
    done = run("warmup", "NB XL")
    assert done.exit_code != 0
    assert "NB XL" in done.stderr

"""A shop's table with all that tables of strangers have, models of it, and commands in this process."""

import random

import pytest


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    """Keep Rich from wrapping, and from what a developer's or a server's environment may force."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run():
    """Return what runs a command and returns what it printed, and its exit code."""
    testing = pytest.importorskip("typer.testing", reason="the command line needs the extra `cli`")
    from tanlearn.cli.app import build_app

    def run(*arguments, stdin=None):
        return testing.CliRunner().invoke(build_app(), list(map(str, arguments)), input=stdin)

    return run


@pytest.fixture(scope="session")
def shop_text():
    """Return 300 rows with ids, gaps, dates, numbers, truths, spaces, and some without a class."""
    rng = random.Random(0)
    lines = ["id, age ,town,signed up,spent,newsletter, buys"]
    for i in range(300):
        spent, letter, town = rng.uniform(0, 200), rng.choice(["True", "False"]), rng.choice(["Graz", "Linz ", ""])
        age = "" if rng.random() < 0.1 else rng.randint(18, 80)
        date = f"20{rng.randint(18, 25)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        score = (spent > 100) + (letter == "True") + (date > "2022") + (age != "" and age > 50) + rng.gauss(0, 0.3)
        buys = "" if i in (7, 70) else " yes " if score > 2.2 else "no"
        lines.append(f"C{i:04},{age},{town},{date},{spent:.2f},{letter},{buys}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def shop(tmp_path, shop_text):
    """Return the path of the shop's table."""
    path = tmp_path / "shop.csv"
    path.write_text(shop_text, encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path, shop, run):
    """Return the path of a tree learnt from the shop's table."""
    path = tmp_path / "shop.tan"
    done = run("fit", shop, "--target", "buys", "--drop", "id", "--learner", "TAN-CMI ML", "-o", path)
    assert done.exit_code == 0, done.output
    return path

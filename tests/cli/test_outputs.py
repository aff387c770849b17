"""What is never written: a file that is read, and what is no regular file."""

import os
import socket
import subprocess

import pytest
from support.command_line import COMMAND


def refused(done, message):
    """Check that a command said one line and did nothing."""
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize("alias", [False, True])
def test_no_command_writes_over_what_it_reads(run, model, shop, tmp_path, alias):
    """By whatever name: a link is the same file."""
    contents = {path: path.read_bytes() for path in (model, shop)}
    for command in (
        ["fit", shop, "-t", "buys", "-o", shop],
        ["predict", model, shop, "-o", shop],
        ["predict", model, shop, "-o", model],
        ["export-c", model, "--bits", "3,1", "-o", model],
        ["export-c", model, "--bits", "3,1", "--rows", shop, "-o", shop],
    ):
        if alias:
            link = tmp_path / f"link{command[-1].suffix}"
            link.unlink(missing_ok=True)
            link.symlink_to(command[-1])
            command = [*command[:-1], link]
        refused(run(*command), f"the output must not be an input, but {command[-1]} is both. Name another output.")
        assert {path: path.read_bytes() for path in contents} == contents


def test_the_program_beside_a_header_is_an_output_too(run, model, shop, tmp_path):
    rows = shop.rename(tmp_path / "m_test.c")
    content = rows.read_bytes()
    refused(run("export-c", model, "--bits", "3,1", "--rows", rows, "-o", tmp_path / "m.h"), f"but {rows} is both")
    assert rows.read_bytes() == content


def test_what_comes_through_the_shell_is_not_written_over(shop):
    content = shop.read_bytes()
    with shop.open() as file:
        command = [*COMMAND, "fit", "-", "-t", "buys", "-o", shop]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"but {shop} is both" in done.stderr
    assert shop.read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_only_regular_files_are_written(run, model, shop, tmp_path):
    pipe, listening, link = tmp_path / "pipe.csv", tmp_path / "socket.csv", tmp_path / "link.csv"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listening))
        for output, kind in (
            (pipe, "a named pipe"),
            (link, "a named pipe"),
            (listening, "a socket"),
            ("/dev/stdout", "a stream that is open already"),
        ):
            for command in (
                ["fit", shop, "-t", "buys"],
                ["predict", model, shop],
                ["export-c", model, "--bits", "3,1"],
                ["counts", shop, "-t", "buys"],
            ):
                refused(run(*command, "-o", output), f"the output must be a regular file, but {output} is {kind}")
        assert pipe.is_fifo()
        assert listening.is_socket()
        assert link.is_symlink()
